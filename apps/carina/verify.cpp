// SPDX-License-Identifier: Apache-2.0
// carina verify: float, fake-quant simulation, TOSA interpreter and NPU model side by side. Exit status 1 if
// NPU and TOSA differ anywhere. With --against: a compiled program against the graphs that it was compiled
// from.
#include "pipeline/verify.hpp"

#include <algorithm>
#include <memory>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "pipeline/against.hpp"
#include "pipeline/delivered.hpp"
#include "pipeline/tflite_against.hpp"
#include "pipeline/timed_profile.hpp"
#include "report/against.hpp"
#include "report/summary.hpp"
#include "report/verification.hpp"

namespace carina::app {
namespace {

struct VerifyFlags {
  BuildOptions build;
  std::vector<NamedFile> inputs;  // for the network, or METHOD=FILE
  std::optional<size_t> samples;
  std::vector<std::filesystem::path> against;
  bool layers = false, integers = false;
  pipeline::Simulation simulation() const {
    return integers ? pipeline::Simulation::Integers : pipeline::Simulation::Float;
  }
  ResultPath json, csv;
  GateOptions gates;
};

/// The samples of a network: those given by --input, else its calibration data.
Result<std::vector<quantize::Sample>> samplesFor(const VerifyFlags& flags, const std::string& method,
                                                 const pipeline::Build& build) {
  NamedTensors arrays;
  std::filesystem::path file = build.options.calibration;
  for (const NamedFile& input : flags.inputs) {
    if (input.name == method) file = input.file;
  }
  if (!file.empty()) {
    CARINA_TRY(arrays, readArrays(file));
  }
  auto samples = pipeline::verificationSamples(build, arrays);
  if (!samples) return std::move(samples).error().inFile(file.string());
  const size_t most = flags.samples.value_or(8);
  if (most > 0 && samples->size() > most) samples->resize(most);
  return samples;
}

Result<int> reportAgainst(VerifyFlags& flags, const pipeline::Against& result,
                          const std::filesystem::path& program) {
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.json, report::againstJson(result)));
  CARINA_RETURN_IF_ERROR(files.add(flags.csv, report::againstCsv(result)));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina verify", files));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print(report::againstText(result));
  if (result.ok()) return flags.gates.finish(0);
  flags.gates.finish(1);
  return fail(Code::ResultsDiffer, "the program's results differ from those of its graph")
      .inFile(program.string());
}

/// A compiled .tflite some of whose operators stay on the CPU, against the original network.
Result<int> verifyTfliteNetwork(VerifyFlags& flags, const pipeline::Build& build) {
  if (flags.layers || flags.integers) {
    throwBadValue(flags.layers ? "--layers" : "--integers",
                  "has no effect on a .tflite with operators on the CPU, where only its NPU operators are "
                  "compared: leave it out");
  }
  NamedTensors arrays;
  if (!flags.inputs.empty()) {
    CARINA_TRY(arrays, readArrays(flags.inputs[0].file));
  }
  const std::filesystem::path& model = flags.build.options.model;
  CARINA_TRY(const auto network, MappedFile::open(model));
  CARINA_TRY(const std::string program, pipeline::programFile(build));
  const pipeline::AgainstOptions options{
      model, {}, 1, flags.build.options.trusted, flags.samples.value_or(8)};
  CARINA_TRY(
      const pipeline::Against result,
      pipeline::verifyTflite(asBytes(program), network->bytes(), model.filename().string(), options, arrays));
  CARINA_RETURN_IF_ERROR(
      flags.gates.check(pipeline::measuredOf(build, static_cast<int64_t>(program.size()))));
  return reportAgainst(flags, result, model);
}

Result<int> runVerification(VerifyFlags& flags) {
  CARINA_TRY(const pipeline::Build build, pipeline::buildAsTflite(flags.build.finish()));
  warn(build.warnings);
  if (pipeline::staysTflite(build)) return verifyTfliteNetwork(flags, build);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(build.times));
  CARINA_TRY(const std::vector<quantize::Sample> samples, samplesFor(flags, "", build));
  CARINA_TRY(pipeline::Verification result,
             pipeline::verify(build, samples, progressBar("verifying"), flags.simulation()));
  CARINA_TRY(const std::string program, pte::writeProgram(build.program));
  pipeline::Measured measured = pipeline::measuredOf(build, static_cast<int64_t>(program.size()));
  measured.sqnr = result.worstDecibels();
  CARINA_RETURN_IF_ERROR(flags.gates.check(measured));
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.json, report::verificationJson(result)));
  CARINA_RETURN_IF_ERROR(files.add(flags.csv, report::verificationCsv({}, {&result, 1})));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina verify", files));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print(report::verificationText(result, flags.layers));
  return flags.gates.finish(result.ok() ? 0 : 1);
}

/// All methods of --method, with state carried from one to the next.
Result<int> verifyMethods(VerifyFlags& flags) {
  CARINA_TRY(const pipeline::MethodsBuild build,
             pipeline::buildMethods(flags.build.finish(), flags.build.methods));
  std::vector<std::vector<quantize::Sample>> samples;
  for (size_t m = 0; m < build.methods.size(); ++m) {
    const pipeline::Build& method = build.methods[m];
    warn(method.warnings);
    if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(method.times));
    CARINA_TRY(std::vector<quantize::Sample> own, samplesFor(flags, build.names[m], method));
    samples.push_back(std::move(own));
  }
  warn(build.warnings);
  CARINA_TRY(const std::vector<pipeline::Verification> results,
             pipeline::verifyMethods(build, samples, progressBar("verifying"), flags.simulation()));
  CARINA_TRY(const std::string program, pte::writeProgram(build.program));
  pipeline::Measured measured = pipeline::measuredOf(build, static_cast<int64_t>(program.size()));
  measured.sqnr.reset();
  for (const pipeline::Verification& result : results) {
    const auto worst = result.worstDecibels();
    if (worst) measured.sqnr = std::min(measured.sqnr.value_or(*worst), *worst);
  }
  CARINA_RETURN_IF_ERROR(flags.gates.check(measured));
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.json, report::verificationJson(build.names, results)));
  CARINA_RETURN_IF_ERROR(files.add(flags.csv, report::verificationCsv(build.names, results)));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina verify", files));
  CARINA_RETURN_IF_ERROR(files.commit());
  bool ok = true;
  std::string text;
  for (size_t m = 0; m < results.size(); ++m) {
    text += fmt::format("method {}\n", build.names[m]) + report::verificationText(results[m], flags.layers);
    ok = ok && results[m].ok();
  }
  files.print(text);
  return flags.gates.finish(ok ? 0 : 1);
}

/// Every --input belongs to a method of --method, or to the only network.
void checkInputs(VerifyFlags& flags) {
  if (!flags.build.sizes.empty()) return;  // chooseSizes() resolves the methods
  const auto& methods = flags.build.methods;
  for (NamedFile& input : flags.inputs) {
    if (input.name.empty() && !methods.empty()) input.name = "forward";
    const std::string& name = input.name;
    const bool known = methods.empty() ? name.empty()
                                       : std::any_of(methods.begin(), methods.end(),
                                                     [&](const auto& method) { return method.name == name; });
    if (!known) {
      throwBadValue("--input",
                    fmt::format("there is no method '{}'\n  name the methods with --method", name));
    }
  }
  if (methods.empty() && flags.inputs.size() > 1) throwBadValue("--input", "is given twice for one network");
}

Result<int> compareProgram(VerifyFlags& flags) {
  CARINA_RETURN_IF_ERROR(checkResults({flags.json, flags.csv, flags.gates.junit}));
  NamedTensors arrays;
  if (!flags.inputs.empty()) {
    CARINA_TRY(arrays, readArrays(flags.inputs[0].file));
  }
  const pipeline::AgainstOptions options{flags.build.options.model, flags.against, flags.samples.value_or(1),
                                         flags.build.options.trusted, 0};
  CARINA_TRY(const pipeline::Against result, pipeline::verifyAgainst(options, arrays));
  if (flags.gates.gates.any()) {
    pipeline::Options profiled;
    profiled.model = options.program;
    CARINA_TRY(const pipeline::TimedProfile timed, pipeline::timedProfile(profiled, ""));
    CARINA_RETURN_IF_ERROR(flags.gates.check(pipeline::measuredOf(timed.profile)));
  }
  return reportAgainst(flags, result, options.program);
}

/// Build options have no effect on an existing program.
void refuseBuildOptions(const Command& command) {
  constexpr std::string_view kAllowed[] = {
      "MODEL",       "--against",     "--input",      "--samples",          "--json",
      "--csv",       "--junit",       "--max-cycles", "--max-inference-ms", "--max-sram",
      "--max-flash", "--require-npu", "--trusted"};
  for (const GivenOption& option : command.given()) {
    if (std::find(std::begin(kAllowed), std::end(kAllowed), option.name) != std::end(kAllowed)) continue;
    throwBadValue(option.name, "has no effect on a compiled program: leave it out with --against");
  }
}

int verify(VerifyFlags& flags) {
  if (!flags.against.empty()) {
    const auto status = compareProgram(flags);
    return status.ok() ? *status : report(status.error());
  }
  if (const auto status = checkResults({flags.json, flags.csv, flags.gates.junit}); !status.ok())
    return report(status.error());
  if (const auto status = flags.build.chooseSizes(&flags.inputs); !status.ok())
    return report(status.error(), flags.build.options.model);
  if (!flags.build.methods.empty()) {
    const auto status = verifyMethods(flags);
    return status.ok() ? *status : report(status.error());
  }
  const auto status = runVerification(flags);
  return status.ok() ? *status : report(status.error(), flags.build.options.model);
}

}  // namespace

void addVerify(CommandLine& line, Run& run) {
  auto flags = std::make_shared<VerifyFlags>();
  Command command = line.add("verify", "Run float, simulation, TOSA and NPU side by side");
  flags->build.declare(command, BuildOptions::Takes::Methods);
  command.find("--target").required(false);
  command
      .option(
          "--against", flags->against,
          "Compare MODEL, a compiled program (.pte, .bpte, blob), with the TOSA graphs (.tosa) that its NPU "
          "parts were compiled from; or a compiled .tflite with the .tflite that it was compiled from")
      .delimiter(',')
      .transform(inputFile());
  addNamedFiles(
      command, "--input", flags->inputs,
      "Samples (.npz): in0, ... or calib0, ...; default: the calibration data. METHOD=FILE for one method");
  command.option("--samples", flags->samples,
                 "At most this many samples (default 8, 0: all); with --against and without --input: this "
                 "many samples of noise (default 1)");
  command.flag("--layers", flags->layers, "One line per layer, even if nothing differs");
  command.flag("--integers", flags->integers,
               "Simulate in the integers of each operator's TOSA form instead of in float, which reproduces "
               "the program's codes");
  addResultOption(command, "--json", flags->json, "The comparison as JSON");
  addResultOption(command, "--csv", flags->csv,
                  "The outputs (with --against: the NPU parts) as comma-separated values");
  using Gate = GateOptions::Gate;
  flags->gates.declare(command,
                       {Gate::Cycles, Gate::InferenceMs, Gate::Sram, Gate::Flash, Gate::Sqnr, Gate::Npu});
  command.callback([flags, command, &run] {
    flags->build.resolveMethods();
    flags->gates.checkUsage();
    checkInputs(*flags);
    if (!flags->against.empty()) {
      refuseBuildOptions(command);
    } else if (flags->build.options.target.empty()) {
      throwMissing("--target");
    }
    run = [flags] { return verify(*flags); };
  });
}

}  // namespace carina::app
