// SPDX-License-Identifier: Apache-2.0
// carina run: a program on the NPU model, a TOSA graph in the interpreter, or firmware on a virtual platform.
#include "pipeline/run.hpp"

#include <memory>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "delivery/compile_cache.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/inference_of_run.hpp"
#include "report/run_stats.hpp"
#include "run_platform.hpp"

namespace carina::app {
namespace {

struct RunFlags {
  pipeline::RunOptions run;
  std::vector<NamedFile> inputs;  // for one method, or METHOD=FILE for several
  std::filesystem::path output, etdump;
  std::string cpu, cache;
  ResultPath json;
  GateOptions gates;
  PlatformFlags platform;
  std::string onlyForFirmware;  // such an option that was given
};

/// Refuses files of other kinds for a virtual platform. The image reader judges what has no known kind.
Status checkIsFirmware(const RunFlags& flags) {
  if (flags.platform.platform == kHostPlatform) return {};
  CARINA_TRY(const pipeline::FileKind kind, pipeline::fileKindOf(flags.run.file));
  if (kind == pipeline::FileKind::Firmware || kind == pipeline::FileKind::Unknown) return {};
  const std::string file = flags.run.file.string(), &platform = flags.platform.platform;
  Error error = fail(Code::OptionDoesNotApply, "{} is a {}, but {} runs firmware (.elf)", file,
                     pipeline::fileKindName(kind), platform)
                    .at("--platform");
  if (kind != pipeline::FileKind::Program)
    return std::move(error).withRemedy("leave it out, or give an .elf file");
  return std::move(error).withRemedy(fmt::format(
      "leave it out to run the program in this process, or build an image with 'carina firmware {} "
      "--platform {} -o FILE.elf'",
      file, platform));
}

Result<int> executeFirmware(RunFlags& flags) {
  CARINA_RETURN_IF_ERROR(checkIsFirmware(flags));
  if (!flags.inputs.empty() || !flags.output.empty()) {
    return fail(Code::OptionDoesNotApply, "firmware provides its own inputs and outputs")
        .at(flags.inputs.empty() ? "--output" : "--input")
        .withRemedy("use files in --semihosting-dir, or link arrays into the image");
  }
  for (const auto& [given, option] : {std::pair(!flags.run.tensorData.empty(), "--tensor-data"),
                                      {!flags.run.configFile.empty(), "--config"},
                                      {!flags.run.method.empty(), "--method"},
                                      {flags.run.resetState != pipeline::ResetState::Never, "--reset-state"},
                                      {!flags.etdump.empty(), "--etdump"},
                                      {flags.run.raw, "--raw"},
                                      {flags.run.trusted, "--trusted"},
                                      {flags.run.dequantize, "--dequantize"},
                                      {flags.gates.gates.any(), "a gate"}}) {
    if (given)
      return fail(Code::OptionDoesNotApply, "is for .pte and .bpte programs only")
          .at(option)
          .withRemedy("leave it out");
  }
  flags.platform.file = flags.run.file;
  flags.platform.json = flags.json;
  flags.platform.target = flags.run.target;
  flags.platform.systemConfig = flags.run.systemConfig;
  flags.platform.memoryMode = flags.run.memoryMode;
  return runOnPlatform(flags.platform);
}

/// The time of one inference of a .pte; the NPU cycles are those of the last run.
Result<std::optional<pipeline::InferenceTime>> inferenceOf(const RunFlags& flags,
                                                           const pipeline::RunResult& result) {
  std::optional<pipeline::InferenceTime> none;
  if (!result.program || !result.methods.empty()) return none;
  CARINA_TRY(const auto file, MappedFile::open(flags.run.file));
  if (pipeline::fileKind(file->bytes(), flags.run.file) != pipeline::FileKind::Program) return none;
  return pipeline::inferenceOfRun(file->bytes(), flags.run, *result.program, flags.cpu);
}

/// Runs the methods that --input names, one after the other.
Result<pipeline::RunResult> runSequence(const RunFlags& flags) {
  for (const auto& [given, option] :
       {std::pair(!flags.run.method.empty(), "--method"), {flags.gates.gates.any(), "a gate"}}) {
    if (given)
      return fail(Code::OptionDoesNotApply, "is for one method, but --input names several")
          .at(option)
          .withRemedy("leave it out, or run the method with --method NAME --input FILE");
  }
  std::vector<pipeline::MethodInputs> methods;
  for (const NamedFile& input : flags.inputs) {
    if (input.name.empty()) {
      return fail(Code::BadOption, "'{}' names no method, but others do", input.file.string())
          .at("--input")
          .withRemedy("give each as METHOD=FILE");
    }
    NamedTensors arrays;  // METHOD= for a method without inputs
    if (!input.file.empty()) {
      CARINA_TRY(arrays, readArrays(input.file));
    }
    methods.push_back({input.name, input.file, std::move(arrays)});
  }
  return pipeline::runMethods(flags.run, methods);
}

/// Runs one method, or several in turn.
Result<pipeline::RunResult> runAll(RunFlags& flags) {
  if (flags.inputs.size() > 1 || (!flags.inputs.empty() && !flags.inputs[0].name.empty()))
    return runSequence(flags);
  NamedTensors arrays;
  if (!flags.inputs.empty()) {
    CARINA_TRY(arrays, readArrays(flags.inputs[0].file));
    flags.run.arraysFile = flags.inputs[0].file;
  }
  return pipeline::runFile(flags.run, arrays);
}

Result<int> execute(RunFlags flags) {
  if (flags.platform.platform != kHostPlatform || isFirmware(flags.run.file)) return executeFirmware(flags);
  if (!flags.onlyForFirmware.empty())
    return fail(Code::OptionDoesNotApply, "is for firmware only")
        .at(flags.onlyForFirmware)
        .withRemedy("leave it out, or give an .elf file");
  if (flags.cache.empty()) flags.run.cache = delivery::defaultCacheFolder();
  if (!flags.cache.empty() && flags.cache != "none") flags.run.cache = flags.cache;
  flags.run.progress = progressBar("running");
  flags.run.profile = !flags.etdump.empty();
  if (!flags.output.empty()) CARINA_RETURN_IF_ERROR(pipeline::checkArraysOutput(flags.output));
  CARINA_RETURN_IF_ERROR(checkOutputs({flags.etdump}));
  CARINA_RETURN_IF_ERROR(checkResults({flags.json, flags.gates.junit}));
  CARINA_TRY(const pipeline::RunResult result, runAll(flags));
  if (!result.method.empty()) flags.run.method = result.method;
  CARINA_TRY(const auto time, inferenceOf(flags, result));
  const pipeline::InferenceTime* inference = time ? &*time : nullptr;
  CARINA_TRY(pipeline::Measured measured, pipeline::measuredOf(result));
  if (time && time->clockHz > 0) measured.inferenceMs = time->milliseconds();
  if (flags.gates.gates.maxSram && result.program && !result.atLoad) {
    CARINA_RETURN_IF_ERROR(pipeline::recordSram(
        flags.run.file, {flags.run.systemConfig, flags.run.memoryMode, flags.run.configFile}, measured));
  }
  CARINA_RETURN_IF_ERROR(flags.gates.check(measured));
  ResultFiles files;
  if (!flags.output.empty()) {
    CARINA_TRY(const std::string bytes, pipeline::arraysFile(flags.output, result.outputs));
    CARINA_RETURN_IF_ERROR(files.files().add(flags.output, bytes));
  }
  if (!flags.json.empty())
    CARINA_RETURN_IF_ERROR(files.add(flags.json, report::runStatsJson(result, inference)));
  if (!flags.etdump.empty())
    CARINA_RETURN_IF_ERROR(files.files().add(flags.etdump, pte::writeEtDump(result.profile)));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina run", files));
  CARINA_RETURN_IF_ERROR(files.commit());
  if (result.atLoad) warn(result.atLoad->warnings);
  if (result.program) warn(result.program->warnings);
  files.print(report::runStatsText(result, inference));
  if (!result.findings.empty()) {
    return fail(Code::Findings, "{} finding{} in its command streams", result.findings.size(),
                result.findings.size() == 1 ? "" : "s")
        .inFile(flags.run.file.string())
        .withRemedy("each is listed with the byte offset of its command");
  }
  if (!result.allPassed())
    return fail(Code::ResultsDiffer, "outputs are not the expected ones").inFile(flags.run.file.string());
  return flags.gates.finish(0);
}

}  // namespace

void addRun(CommandLine& line, Run& run) {
  auto flags = std::make_shared<RunFlags>();
  Command command = line.add(
      "run",
      "Run a program on the NPU model, a .tosa graph in the interpreter, or firmware on a virtual platform");
  command
      .option("FILE", flags->run.file,
              "Program: .pte, .bpte, .tflite compiled for an Ethos-U, .encn for an Ethos-N78; graph: "
              ".tosa; firmware: .elf")
      .transform(inputFile())
      .required();
  addNamedFiles(command, "--input", flags->inputs,
                "Inputs (.npz or .npy): in0, in1, ...; an additional leading axis holds samples. METHOD=FILE "
                "may be repeated: methods run in this order on one state");
  command.option("--output", flags->output,
                 "Where outputs go (.npz): out0, out1, ...; for several methods METHOD.out0, ...");
  addTrustedOption(command, flags->run.trusted);
  command.flag("--raw", flags->run.raw,
               "Pass inputs unchanged: floats for integer inputs are refused, not quantized");
  command.flag("--dequantize", flags->run.dequantize,
               "Write outputs of 8 and 16 bits as the floats that they represent");
  addResultOption(command, "--json", flags->json, "Statistics as JSON");
  using Gate = GateOptions::Gate;
  flags->gates.declare(command,
                       {Gate::Cycles, Gate::InferenceMs, Gate::Sram, Gate::Flash, Gate::Top1, Gate::Npu});
  command.option("--etdump", flags->etdump,
                 "Where a profile for ExecuTorch's tools goes: kernels, NPU calls and NPU operations");
  command.option("--method", flags->run.method,
                 "Method of the program; default: the first whose inputs have the shapes of the arrays, or "
                 "for a .bpte all that have test cases");
  addChoice<pipeline::ResetState, pipeline::ResetState>(
      command, "--reset-state", flags->run.resetState,
      {{"each", pipeline::ResetState::Each}, {"never", pipeline::ResetState::Never}},
      "Reset the program's state before each sample, or never (default)");
  command
      .option("--target", flags->run.target, "NPU to run on; default: the one the program was compiled for")
      .transform(targetName());
  command.option("--system-config", flags->run.systemConfig,
                 "Memories and clock for counting cycles; default: the program's, or the image's");
  command.option("--memory-mode", flags->run.memoryMode,
                 "What lives in which memory; default: the program's, or the image's");
  command
      .option("--config", flags->run.configFile,
              "vela.ini with further system configurations and memory modes")
      .transform(inputFile())
      .check(existingFile());
  command.option("--cache", flags->cache,
                 "Folder for NPU parts that are compiled at load, or none; default: $CARINA_CACHE, "
                 "$XDG_CACHE_HOME/carina or ~/.cache/carina");
  addCpuOption(command, flags->cpu);
  command
      .option("--tensor-data", flags->run.tensorData,
              "Files (.ptd) with data that the program refers to by name")
      .transform(inputFile());
  command.flag("--check", flags->run.check,
               "Check the command streams while they run; exit status 1 if there are findings");
  command
      .option("--atol", flags->run.absoluteTolerance,
              "Absolute tolerance of floating-point outputs of a .bpte")
      .showDefault();
  command
      .option("--rtol", flags->run.relativeTolerance,
              "Relative tolerance of floating-point outputs of a .bpte")
      .showDefault();
  command
      .option("--platform", flags->platform.platform,
              "host (default): runtime and NPU model in this process; corstone-300, 310, 315, 320: firmware")
      .check(oneOf({kHostPlatform, "corstone-300", "corstone-310", "corstone-315", "corstone-320"}));
  addPlatformOptions(command, flags->platform);
  command.callback([flags, command, &run] {
    flags->gates.checkUsage();
    flags->onlyForFirmware = platformOptionGiven(command);
    run = [flags] { return exitStatus(execute(*flags), flags->run.file); };
  });
}

}  // namespace carina::app
