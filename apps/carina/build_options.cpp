// SPDX-License-Identifier: Apache-2.0
#include "build_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "console.hpp"
#include "cpu/cost.hpp"
#include "option_values.hpp"

namespace carina::app {
namespace {

const std::vector<std::string> kStages{"read", "decompose", "quantize",  "tosa",
                                       "npu",  "schedule",  "operations"};

/// Two flags that exclude each other and set or clear `value`.
void addSwitch(Command& command, const std::string& on, const std::string& off, bool& value,
               const std::string& whatOn, const std::string& whatOff) {
  Option set = command.flag(
      on, [&value] { value = true; }, whatOn);
  command
      .flag(
          off, [&value] { value = false; }, whatOff)
      .excludes(set);
}

}  // namespace

void BuildOptions::declare(Command& command, Takes takes) {
  using pipeline::ProgramIo;
  using pipeline::Quantization;
  const bool programs = takes == Takes::NetworksAndPrograms;
  command
      .option("MODEL", options.model,
              programs ? "Network (.pt2, quantized .tflite, .tosa) or program (.pte, compiled .tflite, blob)"
                       : "Network: .pt2 (torch.export.save), quantized .tflite, or .tosa")
      .transform(inputFile())
      .required();
  command.option("--program", options.program,
                 "Which program of a .pt2 that holds several (see 'carina inspect')");
  if (takes != Takes::NetworksForManyTargets) {
    command
        .option("--target", options.target,
                programs ? "NPU variant (see 'carina targets'); of a program: its own"
                         : "NPU variant, or cpu (see 'carina targets')")
        .transform(targetName())
        .required(!programs);
    command.option("--system-config", options.systemConfig, "Memories and clocks; default: the target's");
    command.option("--memory-mode", options.memoryMode, "What lives in which memory; default: the target's");
  }
  command
      .option("--config", options.configFile, "vela.ini with further system configurations and memory modes")
      .transform(inputFile())
      .check(existingFile());
  addChoice<Quantization, Quantization>(
      command, "--quantize", options.quantization,
      {{"int8", Quantization::Int8}, {"int16x8", Quantization::Int16x8}, {"none", Quantization::None}},
      "int8 (default), int16x8, none (default for target cpu)");
  command
      .option("--quantize-config", options.quantizeConfig,
              "Mixed precision: rules by operator, node or module (JSON)")
      .transform(inputFile())
      .check(existingFile());
  if (takes == Takes::Methods) {
    declareMethods(command);
  } else {
    command.option("--calibrate", options.calibration, "Calibration samples (.npz): calib0, calib1, ...")
        .transform(inputFile());
  }
  addSwitch(command, "--per-channel", "--per-tensor", options.perChannel,
            "Weights get one scale per output channel (default)", "Weights get one scale per tensor");
  command
      .option("--observer", observer,
              "How ranges come from samples: histogram (default), minmax, moving-average[:C], "
              "percentile[:P]")
      .check([](const std::string& text) {
        const auto settings = quantize::parseObserver(text);
        return settings.ok() ? "" : settings.error().str();
      });
  command.flag("--equalize", options.equalize, "Even out the channels of neighbouring layers first");
  addSwitch(command, "--fit-weights", "--no-fit-weights", options.fitWeights,
            "Round weights so that layers keep their results (default)", "Round each weight to nearest");
  addSwitch(command, "--bias-correction", "--no-bias-correction", options.correctBiases,
            "Take the mean error of rounded weights off the biases (default)",
            "Leave the biases as they are");
  const std::vector<std::pair<std::string, ProgramIo>> kIo{
      {"float", ProgramIo::Float}, {"int8", ProgramIo::Int8}, {"int16", ProgramIo::Int16}};
  addChoice(command, "--io", io, kIo, "Program inputs and outputs: float (default), int8 or int16");
  addChoice(command, "--io-inputs", inputs, kIo, "The same for inputs only");
  addChoice(command, "--io-outputs", outputs, kIo, "The same for outputs only");
  addCpuOption(command, cpu);
  command.flag("--io-symmetric", options.symmetricIo, "Quantized inputs and outputs have zero point 0");
  command.option("--cpu-op", options.cpuOps, "Keep operators of this type on the CPU: relu, aten.add.Tensor")
      .delimiter(',');
  command.option("--cpu-name", options.cpuNames, "Keep operators of this name on the CPU (with * and ?)")
      .delimiter(',');
  command
      .option("--cpu-module", options.cpuModules,
              "Keep a module and what is below it on the CPU (with * and ?)")
      .delimiter(',');
  addChoice<compiler::Optimize, compiler::Optimize>(
      command, "--optimize", options.optimize,
      {{"performance", compiler::Optimize::Performance}, {"size", compiler::Optimize::Size}},
      "performance (default): fewest cycles; size: smallest arena, layers run stripe by stripe");
  command
      .option("--arena-size", options.arenaLimit,
              "Bytes that the arena may take (256K, 1.5M, ...); layers run stripe by stripe where that "
              "makes it fit")
      .transform(byteCount());
  command
      .option("--dump-after", dumpStages,
              "Print the graph after these stages: read, decompose, quantize, tosa, npu, "
              "schedule, operations")
      .delimiter(',')
      .check(oneOf(kStages));
  command.flag("-v,--verbose", verbose, "Say how long each stage took");
}

void BuildOptions::declareMethods(Command& command) {
  addNamedFiles(command, "--calibrate", calibrations,
                "Calibration samples (.npz): calib0, calib1, ...; METHOD=FILE for those of a method");
  addNamedFiles(command, "--method", methodFiles,
                "METHOD=FILE: a method of the program, made from this .pt2, as often as there are methods. "
                "MODEL, if given, is the first, 'forward'. Buffers of the same name are shared");
  command.find("MODEL").required(false);
}

void BuildOptions::resolveMethods() {
  if (methodFiles.empty() && options.model.empty()) throwMissing("MODEL");
  if (!methodFiles.empty()) {
    if (!options.model.empty()) methods.push_back({"forward", options.model, {}});
    for (const NamedFile& file : methodFiles) {
      if (file.name.empty())
        throwBadValue("--method", fmt::format("'{}' is not METHOD=FILE", file.file.string()));
      methods.push_back({file.name, file.file, {}});
    }
    if (options.model.empty()) options.model = methods.front().model;
  }
  for (const NamedFile& file : calibrations) {
    std::filesystem::path* to = file.name.empty() ? &options.calibration : nullptr;
    for (pipeline::MethodSource& method : methods) {
      if (method.name == (file.name.empty() ? "forward" : file.name)) to = &method.calibration;
    }
    if (to == nullptr) {
      throwBadValue("--calibrate",
                    fmt::format("there is no method '{}'\n  name the methods with --method", file.name));
    }
    if (!to->empty()) throwBadValue("--calibrate", "is given twice for one method");
    *to = file.file;
  }
  if (!methods.empty() && !options.calibration.empty()) {
    throwBadValue("--calibrate", "the samples belong to none of the methods\n  give them as METHOD=FILE");
  }
}

pipeline::Options BuildOptions::finish() const {
  pipeline::Options result = options;
  result.observer = *quantize::parseObserver(observer);
  result.inputs = inputs.value_or(io);
  result.outputs = outputs.value_or(io);
  result.progress = progressBar("calibrating");
  if (!dumpStages.empty()) {
    result.dump = [stages = dumpStages](std::string_view stage, const std::function<std::string()>& text) {
      if (std::find(stages.begin(), stages.end(), stage) == stages.end()) return;
      fmt::print("// after {}\n{}\n", stage, text());
    };
  }
  return result;
}

void addCpuOption(Command& command, std::string& core) {
  std::vector<std::string> names;
  for (const cpu::CoreInfo& info : cpu::coreInfos()) names.emplace_back(info.name);
  const std::string listed = fmt::format("{}", fmt::join(names, ", "));
  command
      .option("--cpu", core,
              "The core that runs the CPU's part, for the time of an inference: " + listed +
                  "; default: the board's, without vector code")
      .check(oneOf(std::move(names)));
}

}  // namespace carina::app
