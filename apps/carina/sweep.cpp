// SPDX-License-Identifier: Apache-2.0
// carina sweep: one network over many targets and memory modes.
#include "report/sweep.hpp"

#include <memory>

#include "base/file.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "option_values.hpp"
#include "report/summary.hpp"

namespace carina::app {
namespace {

struct Flags {
  BuildOptions build;
  pipeline::SweepOptions sweep;
  std::filesystem::path json;
};

Status execute(const Flags& flags) {
  pipeline::SweepOptions options = flags.sweep;
  options.base = flags.build.finish();
  options.progress = progressBar("sweeping");
  CARINA_RETURN_IF_ERROR(checkOutputs({flags.json}));
  CARINA_TRY(const pipeline::Sweep sweep, pipeline::sweep(options));
  warn(sweep.warnings);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(sweep.times));
  if (!flags.json.empty()) CARINA_RETURN_IF_ERROR(writeFile(flags.json, report::sweepJson(sweep.rows)));
  fmt::print("{}", report::sweepText(sweep.rows));
  return {};
}

}  // namespace

void addSweep(CLI::App& app, Run& run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("sweep", "Compare targets and memory modes for a network");
  flags->build.declare(*command, BuildOptions::Takes::NetworksForManyTargets);
  command->add_option("--targets", flags->sweep.targets, "NPU variants, separated by commas; default: all")
      ->transform(targetName())
      ->delimiter(',');
  command
      ->add_option("--system-configs", flags->sweep.systemConfigs,
                   "System configurations; default: each target's own")
      ->delimiter(',');
  command
      ->add_option("--memory-modes", flags->sweep.memoryModes,
                   "Memory modes, or all; default: each target's own")
      ->delimiter(',');
  command->add_option("--json", flags->json, "Where the table goes as JSON");
  command->callback([flags, &run] {
    run = [flags] {
      auto status = execute(*flags);
      return status.ok() ? 0 : report(status.error(), flags->build.options.model);
    };
  });
}

}  // namespace carina::app
