// SPDX-License-Identifier: Apache-2.0
// carina sweep: one network over many targets and memory modes.
#include "report/sweep.hpp"

#include <memory>

#include "base/file.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "report/summary.hpp"

namespace carina::app {
namespace {

struct SweepFlags {
  BuildOptions build;
  pipeline::SweepOptions sweep;
  ResultPath json, csv;
  GateOptions gates;
};

Result<int> execute(SweepFlags& flags) {
  pipeline::SweepOptions options = flags.sweep;
  options.base = flags.build.finish();
  options.cpuCore = flags.build.cpu;
  options.progress = progressBar("sweeping");
  options.base.estimateAccuracy = flags.gates.gates.minSqnr.has_value();
  if (options.pareto && (options.base.arenaLimit > 0 || options.base.optimize == compiler::Optimize::Size)) {
    return fail(Code::OptionDoesNotApply, "a frontier ranges from the smallest arena to the fewest cycles")
        .at("--pareto")
        .withRemedy("leave out --arena-size and --optimize");
  }
  CARINA_RETURN_IF_ERROR(checkResults({flags.json, flags.csv, flags.gates.junit}));
  CARINA_TRY(const pipeline::Sweep sweep, pipeline::sweep(options));
  warn(sweep.warnings);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(sweep.times));
  for (const pipeline::SweepRow& row : sweep.rows) {
    const std::string subject = fmt::format("{} {} {} {}", options.base.model.filename().string(), row.target,
                                            row.systemConfig, row.memoryMode);
    if (!row.problem.empty()) {
      flags.gates.fail(subject, row.problem);
      continue;
    }
    pipeline::Measured measured = row.measured;
    measured.subject = subject;
    CARINA_RETURN_IF_ERROR(flags.gates.check(measured));
  }
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.json, report::sweepJson(sweep.rows)));
  CARINA_RETURN_IF_ERROR(files.add(flags.csv, report::sweepCsv(sweep.rows)));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina sweep", files));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print(report::sweepText(sweep.rows));
  return flags.gates.finish(0);
}

}  // namespace

void addSweep(CommandLine& line, Run& run) {
  auto flags = std::make_shared<SweepFlags>();
  Command command = line.add("sweep", "Compare targets and memory modes for a network");
  flags->build.declare(command, BuildOptions::Takes::NetworksForManyTargets);
  command.option("--targets", flags->sweep.targets, "NPU variants, separated by commas; default: all")
      .transform(targetName())
      .delimiter(',');
  command
      .option("--system-configs", flags->sweep.systemConfigs,
              "System configurations; default: each target's own")
      .delimiter(',');
  command
      .option("--memory-modes", flags->sweep.memoryModes, "Memory modes, or all; default: each target's own")
      .delimiter(',');
  command.flag("--pareto", flags->sweep.pareto,
               "For each configuration, show the arenas that are worth their cycles, and the options that "
               "produce them");
  addResultOption(command, "--json", flags->json, "The table as JSON");
  addResultOption(command, "--csv", flags->csv, "The table as comma-separated values");
  using Gate = GateOptions::Gate;
  flags->gates.declare(command,
                       {Gate::Cycles, Gate::InferenceMs, Gate::Sram, Gate::Flash, Gate::Sqnr, Gate::Npu});
  command.callback([flags, &run] {
    flags->gates.checkUsage();
    run = [flags] { return exitStatus(execute(*flags), flags->build.options.model); };
  });
}

}  // namespace carina::app
