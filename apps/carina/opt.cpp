// SPDX-License-Identifier: Apache-2.0
// carina opt: passes over a graph, from text to text.
#include <memory>

#include "base/file.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "ir/printer.hpp"
#include "option_values.hpp"
#include "pipeline/graph_file.hpp"
#include "pipeline/passes.hpp"

namespace carina::app {
namespace {

struct OptFlags {
  std::filesystem::path input, output, calibration;
  std::string program, target;
  std::vector<std::string> passes;
  bool list = false, verifyEach = false, brief = false, trusted = false;
};

int listPasses() {
  for (const pipeline::NamedPass& pass : pipeline::namedPasses()) {
    const std::string dialects =
        fmt::format("{} -> {}", pipeline::dialectName(pass.takes), pipeline::dialectName(pass.gives));
    fmt::print("{:<24}{:<14}{}{}\n", pass.name, dialects, pass.summary,
               pass.needsTarget ? " (needs --target)" : "");
  }
  return 0;
}

Status optimize(const OptFlags& flags) {
  if (!flags.output.empty()) CARINA_RETURN_IF_ERROR(checkOutputs({flags.output}));
  pipeline::PassSettings settings;
  if (!flags.target.empty()) {
    auto target = npu::findTarget(flags.target);
    if (!target) return std::move(target).error().at("--target");
    settings.target = *target;
  }
  WorkBudget budget = WorkBudget::ofFiles({flags.input}, flags.trusted);
  settings.budget = &budget;
  CARINA_TRY(ir::Graph graph, pipeline::readGraph(flags.input, flags.program));
  if (!flags.calibration.empty()) {
    CARINA_TRY(pipeline::Front front,
               pipeline::quantizeGraph(std::move(graph), flags.input, flags.calibration, flags.trusted));
    warn(front.warnings);
    graph = std::move(front.quantized);
  }
  if (Status status = pipeline::runNamedPasses(graph, flags.passes, settings, flags.verifyEach); !status.ok())
    return std::move(status).error().inFile(flags.input.string());
  const std::string text = ir::print(graph, {.exact = !flags.brief});
  if (!flags.output.empty()) return writeFile(flags.output, asBytes(text));
  fmt::print("{}", text);
  return {};
}

}  // namespace

void addOpt(CommandLine& line, Run& run) {
  auto flags = std::make_shared<OptFlags>();
  Command command = line.add("opt", "Run passes over a graph, from text to text");
  command.option("FILE", flags->input, "A graph as text (.ir), or a network: .pt2, .tosa, quantized .tflite")
      .transform(inputFile());
  command.option("--passes", flags->passes, "Passes in the order in which they run: NAME,NAME,...")
      .delimiter(',');
  command.option("-o,--output", flags->output, "Where the text goes; default: standard output");
  command.option("--target", flags->target, "NPU variant, for passes that depend on it")
      .transform(targetName());
  command
      .option("--calibrate", flags->calibration,
              "Decompose and quantize the graph first, with these samples (.npz), as compile does")
      .transform(inputFile());
  command.option("--program", flags->program,
                 "Program to use from a .pt2 that holds several (see 'carina inspect')");
  command.flag("--verify-each", flags->verifyEach,
               "Verify the graph after each pass, not only after the last one");
  command.flag("--brief", flags->brief,
               "Leave out large constants and source locations; the output cannot be read back");
  addTrustedOption(command, flags->trusted);
  command.flag("--list-passes", flags->list, "List the passes with their input and output dialects");
  command.callback([flags, &run] {
    if (flags->input.empty() && !flags->list) throwMissing("FILE");
    run = [flags] {
      if (flags->list) return listPasses();
      const Status status = optimize(*flags);
      return status.ok() ? 0 : report(Status(status).error(), flags->input);
    };
  });
}

}  // namespace carina::app
