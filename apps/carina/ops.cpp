// SPDX-License-Identifier: Apache-2.0
// carina ops: where each operator of a network runs, and why.
#include <memory>
#include <sstream>

#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "gate_options.hpp"
#include "pipeline/operators.hpp"
#include "report/operators.hpp"
#include "report/summary.hpp"
#include "result_files.hpp"

namespace carina::app {
namespace {

struct OpsFlags {
  BuildOptions build;
  ResultPath json, csv;
  GateOptions gates;
};

/// What runs on the CPU apart from conversions of inputs and outputs, and why.
pipeline::Measured measuredOf(const pipeline::OperatorList& list, const std::filesystem::path& model) {
  pipeline::Measured measured;
  measured.subject = model.filename().string();
  measured.wholly = list.wholly;
  for (const pipeline::OperatorPlace& place : list.operators) {
    if (place.place == pipeline::Place::Npu || place.place == pipeline::Place::Nowhere) continue;
    measured.onCpu = fmt::format("{} ({})", place.op, place.node);
    if (!place.refusals.empty()) measured.onCpu += ": " + place.refusals.front().reason;
    break;
  }
  return measured;
}

/// Without a network: the table of all operators, for one or several targets.
int table(const std::string& targets) {
  std::vector<std::string> list;
  std::istringstream text(targets);
  for (std::string target; std::getline(text, target, ',');) list.push_back(target);
  auto result = pipeline::operatorTable(list);
  if (!result) return report(result.error());
  fmt::print("{}", report::operatorTableMarkdown(*result));
  return 0;
}

int ops(OpsFlags& flags) {
  if (flags.build.options.model.empty()) return table(flags.build.options.target);
  if (const auto status = checkResults({flags.json, flags.csv, flags.gates.junit}); !status.ok())
    return report(status.error());
  auto list = pipeline::listOperators(flags.build.finish());
  if (!list) return report(list.error(), flags.build.options.model);
  warn(list->warnings);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(list->times));
  ResultFiles files;
  Status status = flags.gates.check(measuredOf(*list, flags.build.options.model));
  if (status.ok()) status = files.add(flags.json, report::operatorsJson(*list));
  if (status.ok()) status = files.add(flags.csv, report::operatorsCsv(*list));
  if (status.ok()) status = flags.gates.addJunit("carina ops", files);
  if (status.ok()) status = files.commit();
  if (!status.ok()) return report(status.error());
  files.print(report::operatorsText(*list));
  return flags.gates.finish(list->problems.empty() ? 0 : report(Error(list->problems)));
}

}  // namespace

void addOps(CommandLine& line, Run& run) {
  auto flags = std::make_shared<OpsFlags>();
  Command command = line.add("ops",
                             "List a network's operators: where each runs, why not on the NPU, and at what "
                             "cost; without a network, all operators");
  flags->build.declare(command);
  command.find("MODEL").required(false);
  addResultOption(command, "--json", flags->json, "The list as JSON");
  addResultOption(command, "--csv", flags->csv, "The list as comma-separated values");
  flags->gates.declare(command, {GateOptions::Gate::Npu});
  command.callback([flags, &run] {
    flags->gates.checkUsage();
    if (flags->build.options.model.empty()) {
      if (flags->gates.gates.any()) throwMissing("with --require-npu, MODEL");
      for (const auto& [path, option] : {std::pair(&flags->json, "--json"), {&flags->csv, "--csv"}}) {
        if (!path->empty()) throwMissing(std::string("with ") + option + ", MODEL");
      }
    }
    run = [flags] { return ops(*flags); };
  });
}

}  // namespace carina::app
