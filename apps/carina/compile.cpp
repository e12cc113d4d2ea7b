// SPDX-License-Identifier: Apache-2.0
// carina compile: a network to a program.
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "base/output_path.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "pipeline/delivered.hpp"
#include "pipeline/ethosn_build.hpp"
#include "pipeline/inference_time.hpp"
#include "pipeline/loaded_program.hpp"
#include "precision_options.hpp"
#include "report/at_load.hpp"
#include "report/precision.hpp"
#include "report/program_io.hpp"
#include "report/summary.hpp"

namespace carina::app {
namespace {

struct CompileFlags {
  BuildOptions build;
  std::filesystem::path output;
  std::filesystem::path report;
  ResultPath json;  // of the report, or of the precision search
  GateOptions gates;
  PrecisionOptions precision;
  std::vector<std::string> constantMethods;  // NAME=NUMBER
  std::filesystem::path ioHeader;            // empty: none
  std::vector<GivenOption> given;
};

/// Program, report and gates are written together, or not at all. A program that misses a gate is not
/// written. `found`: the search that chose it, if any.
Status write(const pipeline::Build& build, CompileFlags& flags,
             const precision::AutoPrecision* found = nullptr) {
  CARINA_TRY(const std::string program, pipeline::programFile(build));
  const auto bytes = static_cast<int64_t>(program.size());
  pipeline::Measured measured = pipeline::measuredOf(build, bytes);
  const auto time = pipeline::inferenceOf(build, flags.build.cpu);
  if (time && time->clockHz > 0) measured.inferenceMs = time->milliseconds();
  if (found) measured.top1 = found->measured.top1;
  CARINA_RETURN_IF_ERROR(flags.gates.check(measured));
  ResultFiles results;
  if (found) {
    CARINA_RETURN_IF_ERROR(flags.precision.add(*found, flags.precision.goal(flags.gates.gates), build.options,
                                               !flags.gates.missed(), flags.json, results));
  } else if (!flags.json.empty()) {
    CARINA_RETURN_IF_ERROR(results.add(flags.json, report::reportJson(build, bytes, flags.build.cpu)));
  }
  if (!flags.gates.missed())
    CARINA_RETURN_IF_ERROR(pipeline::addOutput(build, flags.output, program, results.files()));
  if (!flags.ioHeader.empty() && !flags.gates.missed()) {
    CARINA_RETURN_IF_ERROR(results.files().add(
        flags.ioHeader, report::programIoHeader(build, flags.output.filename().string())));
  }
  if (!flags.report.empty())
    CARINA_RETURN_IF_ERROR(
        report::addReport(build, flags.output, bytes, flags.report, results.files(), flags.build.cpu));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina compile", results));
  CARINA_RETURN_IF_ERROR(results.commit());
  const std::string table = found ? report::precisionText(*found) : "";
  results.print(
      table + report::summary(build, flags.gates.missed() ? "(not written)" : flags.output, flags.build.cpu));
  return {};
}

/// The same for a program with several methods.
Status writeMethods(const pipeline::MethodsBuild& build, CompileFlags& flags) {
  CARINA_TRY(const std::string program, pipeline::programFile(build));
  CARINA_RETURN_IF_ERROR(
      flags.gates.check(pipeline::measuredOf(build, static_cast<int64_t>(program.size()))));
  ResultFiles results;
  const bool missed = flags.gates.missed();
  if (!missed) CARINA_RETURN_IF_ERROR(results.files().add(flags.output, program));
  if (!flags.report.empty())
    CARINA_RETURN_IF_ERROR(
        report::addReport(build, flags.output, flags.report, results.files(), flags.build.cpu));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina compile", results));
  CARINA_RETURN_IF_ERROR(results.commit());
  results.print(report::summary(build, missed ? "(not written)" : flags.output, flags.build.cpu));
  return {};
}

/// The measurements, if none of them reaches the goal.
Status writeMiss(const precision::AutoPrecision& found, const pipeline::Options& options,
                 CompileFlags& flags) {
  const precision::Goal goal = flags.precision.goal(flags.gates.gates);
  CARINA_RETURN_IF_ERROR(flags.gates.check(found.measured));
  ResultFiles results;
  CARINA_RETURN_IF_ERROR(flags.precision.add(found, goal, options, false, flags.json, results));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina compile", results));
  CARINA_RETURN_IF_ERROR(results.commit());
  results.print(report::precisionText(found));
  warn(std::array{report::precisionMiss(found, goal)});
  return {};
}

/// Input or output of a compiled network: 8-bit codes and what they mean.
void printPort(const char* kind, size_t index, const pipeline::EthosNPort& port) {
  fmt::print("  {:<7} {} {} {}", index == 0 ? kind : "", index, dtypeName(port.type.dtype),
             shapeText(port.type.shape));
  if (port.quantization) {
    fmt::print(", scale {:.6g}, zero point {}", port.quantization->scales[0],
               port.quantization->zeroPoints[0]);
  }
  fmt::print("\n");
}

int compileEthosN(CompileFlags& flags) {
  if (const auto status = pipeline::checkEthosNOutput(flags.output); !status.ok())
    return report(status.error());
  if (!flags.report.empty() || !flags.json.empty()) {
    return report(fail(Code::OptionDoesNotApply, "there is no report for a compiled network of an Ethos-N")
                      .at(flags.report.empty() ? "--json" : "--report")
                      .withRemedy("leave it out"));
  }
  if (!flags.ioHeader.empty()) {
    return report(fail(Code::OptionDoesNotApply, "is written for programs, not for compiled networks")
                      .at("--io-header")
                      .withRemedy("write a .pte"));
  }
  const pipeline::Options options = flags.build.finish();
  const auto build = pipeline::buildEthosN(options);
  if (!build) return report(build.error(), options.model);
  warn(build->warnings);
  pipeline::Measured measured;
  measured.subject = options.model.filename().string();
  measured.wholly = true;
  ResultFiles results;
  Status status = flags.gates.check(measured);
  if (status.ok()) status = pipeline::addEthosNOutput(*build, flags.output, results.files());
  if (status.ok()) status = flags.gates.addJunit("carina compile", results);
  if (status.ok()) status = results.commit();
  if (!status.ok()) return report(status.error(), flags.output);
  const ethosn::CompiledNetwork& network = build->network;
  fmt::print("{} -> {}\n", options.model.filename().string(), flags.output.filename().string());
  fmt::print("  target  {}, {} KiB of SRAM\n", build->target.variant->name, build->target.sramBytes / 1024);
  fmt::print("  NPU     {} operations, the whole network\n", build->tosa.numNodes());
  fmt::print("  memory  constants {:.1f} KiB, intermediates {:.1f} KiB, commands {:.1f} KiB\n",
             static_cast<double>(network.constantDma.size()) / 1024,
             static_cast<double>(ethosn::intermediateBytes(network)) / 1024,
             static_cast<double>(network.constantControlUnit.size()) / 1024);
  for (size_t i = 0; i < build->inputs.size(); ++i) printPort("inputs", i, build->inputs[i]);
  for (size_t i = 0; i < build->outputs.size(); ++i) printPort("outputs", i, build->outputs[i]);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(build->times));
  return 0;
}

/// Checks the names of the outputs before anything is compiled.
Status checkCompileOutputs(const CompileFlags& flags) {
  CARINA_RETURN_IF_ERROR(pipeline::checkOutput(flags.output));
  CARINA_RETURN_IF_ERROR(app::checkOutputs({flags.precision.rules, flags.ioHeader}));
  CARINA_RETURN_IF_ERROR(checkResults({flags.gates.junit, flags.json, flags.precision.csv}));
  return flags.report.empty() ? Status() : checkOutputFolder(flags.report);
}

/// NAME=NUMBER
Result<std::pair<std::string, int64_t>> constantMethod(const std::string& text) {
  const size_t equals = text.find('=');
  int64_t value = 0;
  const char* first = text.data() + std::min(text.size(), equals == std::string::npos ? equals : equals + 1);
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
  if (equals == std::string::npos || equals == 0 || error != std::errc() ||
      end != text.data() + text.size()) {
    return fail(Code::BadOption, "'{}' is not NAME=NUMBER", text)
        .at("--constant-method")
        .withRemedy("for instance get_max_context_len=128");
  }
  return std::pair(text.substr(0, equals), value);
}

/// The network in the precision that --auto-precision finds.
Result<int> compileChosen(const pipeline::Options& options, CompileFlags& flags) {
  CARINA_TRY(const precision::AutoPrecision found,
             precision::autoPrecision(options, flags.precision.goal(flags.gates.gates),
                                      progressBar("choosing precision")));
  if (!found.build) {
    CARINA_RETURN_IF_ERROR(writeMiss(found, options, flags));
    return flags.gates.finish(0);
  }
  warn(found.build->warnings);
  CARINA_RETURN_IF_ERROR(write(*found.build, flags, &found));
  return flags.gates.finish(0);
}

/// A program whose NPU parts are TOSA graphs, for the selected NPU.
Result<int> compileLoaded(const CompileFlags& flags) {
  constexpr std::string_view kTaken[] = {"MODEL",         "--output", "--target", "--system-config",
                                         "--memory-mode", "--config", "--verbose"};
  for (const GivenOption& option : flags.given) {
    if (std::find(std::begin(kTaken), std::end(kTaken), option.name) != std::end(kTaken)) continue;
    return fail(Code::OptionDoesNotApply, "has no effect on a program")
        .at(option.name)
        .withRemedy("leave it out, or give the network");
  }
  const pipeline::Options& options = flags.build.options;
  const delivery::LoadOptions load{options.target, options.systemConfig, options.memoryMode,
                                   options.configFile, std::nullopt};
  CARINA_TRY(const delivery::AtLoad done, pipeline::compileProgram(options.model, load, flags.output));
  fmt::print("{} -> {}\n  {}\n", options.model.filename().string(), flags.output.filename().string(),
             report::atLoadText(done));
  return 0;
}

/// Rejects options that are incompatible with --method.
Status checkMethods(const CompileFlags& flags) {
  if (flags.precision.automatic) {
    return fail(Code::OptionDoesNotApply, "chooses the precision of one network")
        .at("--auto-precision")
        .withRemedy(
            "have it write rules for each network (--write-rules), and pass them with --quantize-config");
  }
  if (!flags.json.empty()) {
    return fail(Code::OptionDoesNotApply, "is the report of one network, but --method names several")
        .at("--json")
        .withRemedy("use --report DIR, which writes one for each method");
  }
  if (flags.output.extension() == ".pte") return {};
  return fail(Code::NotRepresentable, "a {} file holds one network, but this program has several methods",
              flags.output.extension().string())
      .inFile(flags.output.string())
      .withRemedy("write a .pte");
}

Result<int> compileMethods(const pipeline::Options& options, CompileFlags& flags) {
  CARINA_TRY(const pipeline::MethodsBuild build, pipeline::buildMethods(options, flags.build.methods));
  for (const pipeline::Build& method : build.methods) warn(method.warnings);
  warn(build.warnings);
  CARINA_RETURN_IF_ERROR(writeMethods(build, flags));
  if (flags.build.verbose) {
    for (const pipeline::Build& method : build.methods)
      fmt::print(stderr, "{}", report::stageTimes(method.times));
  }
  return flags.gates.finish(0);
}

int compile(CompileFlags& flags) {
  if (const auto status = flags.build.chooseSizes(); !status.ok())
    return report(status.error(), flags.build.options.model);
  if (flags.build.options.model.extension() == ".pte") {
    auto code = compileLoaded(flags);
    return code.ok() ? *code : report(code.error(), flags.build.options.model);
  }
  if (!flags.build.methods.empty()) {
    if (const auto status = checkMethods(flags); !status.ok()) return report(status.error());
  }
  if (flags.precision.automatic &&
      (ethosn::isEthosNName(flags.build.options.target) || flags.build.options.target == "cpu")) {
    return report(
        fail(Code::OptionDoesNotApply, "there is no precision to choose for {}", flags.build.options.target)
            .at("--auto-precision")
            .withRemedy("name an Ethos-U with --target"));
  }
  const bool network = flags.output.extension() == ".encn";
  if (network && ethosn::isEthosNName(flags.build.options.target)) return compileEthosN(flags);
  if (const auto status = checkCompileOutputs(flags); !status.ok()) return report(status.error());
  pipeline::Options options = flags.build.finish();
  options.tflite = flags.output.extension() == ".tflite";
  options.measureSqnr = !flags.report.empty() || !flags.json.empty();
  options.keepSources = false;
  options.estimateAccuracy = true;
  for (const std::string& text : flags.constantMethods) {
    auto method = constantMethod(text);
    if (!method) return report(method.error());
    options.constantMethods.push_back(std::move(*method));
  }
  if (flags.precision.automatic || !flags.build.methods.empty()) {
    const auto status =
        flags.precision.automatic ? compileChosen(options, flags) : compileMethods(options, flags);
    return status.ok() ? *status : report(status.error(), options.model);
  }
  auto build = pipeline::build(options);
  if (!build) return report(build.error(), options.model);
  warn(build->warnings);
  if (auto status = write(*build, flags); !status.ok()) return report(status.error(), flags.output);
  if (flags.build.verbose)
    fmt::print(stderr, "{}{}", report::stageTimes(build->times), report::cycleBoundLine(*build));
  return flags.gates.finish(0);
}

}  // namespace

void addCompile(CommandLine& line, Run& run) {
  auto flags = std::make_shared<CompileFlags>();
  Command command = line.add("compile", "Compile a network to a program");
  flags->build.declare(command, BuildOptions::Takes::Methods);
  command
      .option("-o,--output", flags->output,
              "Result: .pte (program), .tflite (ethos-u operator), .tosa, .bin (delegate blob); for an "
              "Ethos-N: .pte, or .encn (compiled network)")
      .required();
  addChoice<pipeline::Delivery, pipeline::Delivery>(
      command, "--deliver", flags->build.options.delivery,
      {{"compiled", pipeline::Delivery::Compiled}, {"tosa", pipeline::Delivery::Tosa}},
      "Form of the NPU parts in a .pte: commands (default), or TOSA graphs, which are compiled where the "
      "program is loaded");
  command.option("--report", flags->report,
                 "Folder for the report: layers, memory, quantization (JSON and text)");
  addResultOption(command, "--json", flags->json,
                  "The report as JSON (report.json of --report); with --auto-precision, the programs and "
                  "layers that were measured");
  command.option("--io-header", flags->ioHeader,
                 "Types, scales and zero points of inputs and outputs as a C header");
  command.option("--constant-method", flags->constantMethods,
                 "NAME=NUMBER: a further method of the program that returns the number, for instance "
                 "get_max_context_len=128 for 'carina generate'");
  flags->precision.declare(command);
  using Gate = GateOptions::Gate;
  flags->gates.declare(
      command, {Gate::Cycles, Gate::InferenceMs, Gate::Sram, Gate::Flash, Gate::Sqnr, Gate::Top1, Gate::Npu});
  command.callback([flags, command, &run] {
    flags->build.resolveMethods();
    flags->gates.checkUsage();
    flags->given = command.given();
    flags->precision.checkUsage(flags->gates, flags->build);
    run = [flags] { return compile(*flags); };
  });
}

}  // namespace carina::app
