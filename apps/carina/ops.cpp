// SPDX-License-Identifier: Apache-2.0
// carina ops: where each operator of a network runs, and why.
#include <memory>
#include <sstream>

#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "pipeline/operators.hpp"
#include "report/operators.hpp"
#include "report/summary.hpp"
#include "result_files.hpp"

namespace carina::app {
namespace {

struct Flags {
  BuildOptions build;
  ResultPath json, csv;
};

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

int ops(const Flags& flags) {
  if (flags.build.options.model.empty()) return table(flags.build.options.target);
  if (const auto status = checkResults({flags.json, flags.csv}); !status.ok()) return report(status.error());
  auto list = pipeline::listOperators(flags.build.finish());
  if (!list) return report(list.error(), flags.build.options.model);
  warn(list->warnings);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(list->times));
  ResultFiles files;
  Status status = files.add(flags.json, report::operatorsJson(*list));
  if (status.ok()) status = files.add(flags.csv, report::operatorsCsv(*list));
  if (status.ok()) status = files.commit();
  if (!status.ok()) return report(status.error());
  files.print(report::operatorsText(*list));
  return list->problems.empty() ? 0 : report(Error(list->problems));
}

}  // namespace

void addOps(CommandLine& line, Run& run) {
  auto flags = std::make_shared<Flags>();
  Command command = line.add(
      "ops",
      "List a network's operators: where each runs, why not on the NPU, at what cost; without a network "
      "the table of all operators");
  flags->build.declare(command);
  command.find("MODEL").required(false);
  addResultOption(command, "--json", flags->json, "The list as JSON");
  addResultOption(command, "--csv", flags->csv, "The list as comma-separated values");
  command.callback([flags, &run] { run = [flags] { return ops(*flags); }; });
}

}  // namespace carina::app
