// SPDX-License-Identifier: Apache-2.0
// carina profile: where the cycles and bytes of a network or program go.
#include "report/profile.hpp"

#include <memory>

#include "base/file.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "ethosn_measured.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "pipeline/timed_profile.hpp"
#include "report/ethosn_profile.hpp"
#include "report/summary.hpp"

namespace carina::app {
namespace {

struct ProfileFlags {
  BuildOptions build;
  report::ProfileText text;
  std::filesystem::path input;
  ResultPath json, csv, trace;
  GateOptions gates;
};

Result<int> execute(ProfileFlags& flags) {
  CARINA_RETURN_IF_ERROR(checkResults({flags.json, flags.csv, flags.trace, flags.gates.junit}));
  pipeline::Options options = flags.build.finish();
  options.estimateAccuracy = flags.gates.gates.minSqnr.has_value();
  CARINA_TRY(const pipeline::TimedProfile timed,
             pipeline::timedProfile(options, flags.build.cpu, flags.input));
  const pipeline::Profile& profile = timed.profile;
  const pipeline::InferenceTime* inference = timed.inference ? &*timed.inference : nullptr;
  warn(profile.warnings);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(profile.times));
  CARINA_RETURN_IF_ERROR(flags.gates.check(pipeline::measuredOf(profile)));
  ResultFiles files;
  // Written only on request: with hundreds of thousands of operations each takes seconds and hundreds of
  // megabytes.
  if (!flags.json.empty()) CARINA_RETURN_IF_ERROR(files.add(flags.json, report::profileJson(timed)));
  if (!flags.csv.empty()) CARINA_RETURN_IF_ERROR(files.add(flags.csv, report::profileCsv(profile)));
  if (!flags.trace.empty()) CARINA_RETURN_IF_ERROR(files.add(flags.trace, report::profileTrace(timed)));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina profile", files));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print(report::profileText(profile, flags.text, inference));
  return flags.gates.finish(0);
}

/// The profile of a network or program on an Ethos-N: passes instead of operations on a timeline.
Result<int> executeEthosN(ProfileFlags& flags) {
  if (!flags.input.empty()) {
    return fail(Code::OptionDoesNotApply,
                "is for an Ethos-U: the cost of a sample on an Ethos-N is not known")
        .at("--input")
        .withRemedy("leave it out");
  }
  if (!flags.trace.empty() || flags.text.operations || flags.text.memory) {
    return fail(Code::OptionDoesNotApply, "is for an Ethos-U: the timeline of an Ethos-N is not public")
        .at(!flags.trace.empty()    ? "--trace"
            : flags.text.operations ? "--operations"
                                    : "--memory-map")
        .withRemedy("leave it out");
  }
  CARINA_RETURN_IF_ERROR(checkResults({flags.json, flags.csv, flags.gates.junit}));
  pipeline::Options options = flags.build.finish();
  options.estimateAccuracy = flags.gates.gates.minSqnr.has_value();
  CARINA_TRY(const EthosNMeasured made, measureEthosN(options));
  const pipeline::EthosNProfile& profile = made.profile;
  warn(profile.warnings);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(profile.times));
  CARINA_RETURN_IF_ERROR(flags.gates.check(made.measured));
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.json, report::ethosNProfileJson(profile)));
  CARINA_RETURN_IF_ERROR(files.add(flags.csv, report::ethosNProfileCsv(profile)));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina profile", files));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print(report::ethosNProfileText(profile));
  return flags.gates.finish(0);
}

}  // namespace

void addProfile(CommandLine& line, Run& run) {
  auto flags = std::make_shared<ProfileFlags>();
  Command command = line.add(
      "profile", "Show cycles, bottlenecks, traffic and memory of a network or program, layer by layer");
  flags->build.declare(command, BuildOptions::Takes::NetworksAndPrograms);
  command
      .option("--input", flags->input,
              "Samples for a network (in0, in1, ... or calib0, ...): count the cycles of each, and how often "
              "each path of choices and loops is taken")
      .transform(inputFile());
  addResultOption(command, "--json", flags->json, "The profile as JSON");
  addResultOption(command, "--csv", flags->csv, "The layers as comma-separated values");
  addResultOption(command, "--trace", flags->trace, "The timeline for chrome://tracing or ui.perfetto.dev");
  using Gate = GateOptions::Gate;
  flags->gates.declare(command,
                       {Gate::Cycles, Gate::InferenceMs, Gate::Sram, Gate::Flash, Gate::Sqnr, Gate::Npu});
  command.flag("--operations", flags->text.operations, "One line per NPU operation instead of per layer");
  command.flag("--memory-map", flags->text.memory, "The whole memory plan, buffer by buffer");
  command.callback([flags, &run] {
    flags->gates.checkUsage();
    run = [flags] {
      const bool ethosN = isForEthosN(flags->build.options);
      const auto status = ethosN ? executeEthosN(*flags) : execute(*flags);
      return status.ok() ? *status : report(status.error(), flags->build.options.model);
    };
  });
}

}  // namespace carina::app
