// SPDX-License-Identifier: Apache-2.0
// carina ci: every network of a project file on its targets, against its gates.
#include <memory>

#include "ci/run_project.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "report/gates.hpp"
#include "result_files.hpp"

namespace carina::app {
namespace {

struct CiFlags {
  std::filesystem::path project = "carina.toml";
  ci::RunOptions options;
  ResultPath json, csv, markdown, junit;
};

Result<int> execute(CiFlags& flags) {
  CARINA_RETURN_IF_ERROR(checkResults({flags.json, flags.csv, flags.markdown, flags.junit}));
  CARINA_TRY(const ci::Project project, ci::readProject(flags.project));
  flags.options.progress = progressBar("ci");
  CARINA_TRY(const std::vector<ci::JobResult> results, ci::runProject(project, flags.options));
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.json, ci::resultsJson(results)));
  CARINA_RETURN_IF_ERROR(files.add(flags.csv, ci::resultsCsv(results)));
  CARINA_RETURN_IF_ERROR(files.add(flags.markdown, ci::resultsMarkdown(results)));
  CARINA_RETURN_IF_ERROR(files.add(flags.junit, ci::resultsJunit(results)));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print(ci::resultsText(results));
  int status = 0;
  for (const ci::JobResult& result : results) {
    warn(result.warnings);
    for (const pipeline::GateResult& gate : result.gates) {
      if (gate.passed) continue;
      fmt::print(stderr, "{}", diagnosticText("gate missed", {report::gateText(gate), "", "", ""}));
      if (status == 0) status = kGateMissed;
    }
    if (!result.errors.empty()) status = report(Error(result.errors));
  }
  return status;
}

}  // namespace

void addCi(CommandLine& line, Run& run) {
  auto flags = std::make_shared<CiFlags>();
  Command command = line.add("ci", "Compile every network of a project file and check it against its gates");
  command.option("PROJECT", flags->project, "Project file; default: carina.toml");
  command.option("-o,--output", flags->options.output,
                 "Folder for programs, reports, ci.json, summary.md and junit.xml");
  command
      .option("--baseline", flags->options.baseline,
              "Folder written by an earlier run; the summary then shows what changed")
      .check(existingFolder());
  addResultOption(command, "--json", flags->json, "All figures and gates as JSON");
  addResultOption(command, "--csv", flags->csv, "The table as comma-separated values");
  addResultOption(command, "--markdown", flags->markdown, "Tables for a job summary or a pull request");
  addResultOption(command, "--junit", flags->junit, "All gates as JUnit XML");
  command.callback([flags, &run] { run = [flags] { return exitStatus(execute(*flags), flags->project); }; });
}

}  // namespace carina::app
