// SPDX-License-Identifier: Apache-2.0
// carina profile: where the cycles and bytes of a network or program go.
#include "report/profile.hpp"

#include <memory>

#include "base/file.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "report/summary.hpp"

namespace carina::app {
namespace {

struct Flags {
  BuildOptions build;
  report::ProfileText text;
  std::filesystem::path json, trace;
};

Status execute(const Flags& flags) {
  CARINA_RETURN_IF_ERROR(checkOutputs({flags.json, flags.trace}));
  CARINA_TRY(const pipeline::Profile profile, pipeline::profile(flags.build.finish()));
  warn(profile.warnings);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(profile.times));
  OutputFiles files;
  if (!flags.json.empty()) CARINA_RETURN_IF_ERROR(files.add(flags.json, report::profileJson(profile)));
  if (!flags.trace.empty()) CARINA_RETURN_IF_ERROR(files.add(flags.trace, report::profileTrace(profile)));
  CARINA_RETURN_IF_ERROR(files.commit());
  fmt::print("{}", report::profileText(profile, flags.text));
  return {};
}

}  // namespace

void addProfile(CLI::App& app, Run& run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "profile", "Cycles, limits, traffic and memory of a network or program, layer by layer");
  flags->build.declare(*command, BuildOptions::Takes::NetworksAndPrograms);
  command->add_option("--json", flags->json, "Where the profile goes as JSON");
  command->add_option("--trace", flags->trace,
                      "Where the time line goes, for chrome://tracing or ui.perfetto.dev");
  command->add_flag("--operations", flags->text.operations,
                    "One line per NPU operation instead of per layer");
  command->add_flag("--memory-map", flags->text.memory, "The whole memory plan, buffer by buffer");
  command->callback([flags, &run] {
    run = [flags] {
      auto status = execute(*flags);
      return status.ok() ? 0 : report(status.error(), flags->build.options.model);
    };
  });
}

}  // namespace carina::app
