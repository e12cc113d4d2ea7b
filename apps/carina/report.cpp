// SPDX-License-Identifier: Apache-2.0
// carina report: a profile as a page for a browser.
#include <memory>

#include "base/file.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "ethosn_measured.hpp"
#include "gate_options.hpp"
#include "pipeline/timed_profile.hpp"
#include "report/ethosn_profile.hpp"
#include "report/model_explorer.hpp"
#include "report/page.hpp"
#include "report/summary.hpp"

namespace carina::app {
namespace {

struct ReportFlags {
  BuildOptions build;
  std::filesystem::path output, modelExplorer;
  report::PageAttachments attachments;
  GateOptions gates;
};

Result<int> execute(ReportFlags& flags) {
  CARINA_RETURN_IF_ERROR(checkOutputs({flags.output, flags.modelExplorer}));
  CARINA_RETURN_IF_ERROR(checkResults({flags.gates.junit}));
  pipeline::Options options = flags.build.finish();
  options.measureSqnr = true;
  options.estimateAccuracy = flags.gates.gates.minSqnr.has_value();
  CARINA_TRY(const pipeline::TimedProfile timed, pipeline::timedProfile(options, flags.build.cpu));
  const pipeline::Profile& profile = timed.profile;
  warn(profile.warnings);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(profile.times));
  CARINA_RETURN_IF_ERROR(flags.gates.check(pipeline::measuredOf(profile)));
  CARINA_TRY(const std::string page, report::profilePage(timed, flags.attachments));
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.files().add(flags.output, page));
  if (!flags.modelExplorer.empty()) {
    CARINA_TRY(const std::string graph, report::modelExplorerJson(timed));
    CARINA_RETURN_IF_ERROR(files.files().add(flags.modelExplorer, graph));
  }
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina report", files));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print("");
  return flags.gates.finish(0);
}

/// For an Ethos-N: its passes as a page.
Result<int> reportEthosN(ReportFlags& flags) {
  const auto refuse = [](bool given, const char* option) {
    return given ? Status(fail(Code::OptionDoesNotApply,
                               "is for an Ethos-U: the page of an Ethos-N shows only its passes")
                              .at(option)
                              .withRemedy("leave it out"))
                 : Status();
  };
  CARINA_RETURN_IF_ERROR(refuse(!flags.attachments.sweep.empty(), "--sweep"));
  CARINA_RETURN_IF_ERROR(refuse(!flags.attachments.against.empty(), "--against"));
  CARINA_RETURN_IF_ERROR(refuse(!flags.modelExplorer.empty(), "--model-explorer"));
  CARINA_RETURN_IF_ERROR(checkOutputs({flags.output}));
  CARINA_RETURN_IF_ERROR(checkResults({flags.gates.junit}));
  pipeline::Options options = flags.build.finish();
  options.estimateAccuracy = flags.gates.gates.minSqnr.has_value();
  CARINA_TRY(const EthosNMeasured made, measureEthosN(options));
  warn(made.profile.warnings);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(made.profile.times));
  CARINA_RETURN_IF_ERROR(flags.gates.check(made.measured));
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.files().add(flags.output, report::ethosNProfilePage(made.profile)));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina report", files));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print("");
  return flags.gates.finish(0);
}

}  // namespace

void addReport(CommandLine& line, Run& run) {
  auto flags = std::make_shared<ReportFlags>();
  Command command = line.add(
      "report", "Write an HTML page: timeline, memory, layers, roofline and graph of a network or program");
  flags->build.declare(command, BuildOptions::Takes::NetworksAndPrograms);
  command.option("-o,--output", flags->output, "Where the page goes (.html)").required();
  command.option("--sweep", flags->attachments.sweep, "JSON of carina sweep, shown as a table of targets");
  command.option("--against", flags->attachments.against,
                 "JSON of carina profile of another build, compared layer by layer");
  command.option("--model-explorer", flags->modelExplorer,
                 "Write the network with the profile's figures as a graph for Model Explorer (.json)");
  using Gate = GateOptions::Gate;
  flags->gates.declare(command,
                       {Gate::Cycles, Gate::InferenceMs, Gate::Sram, Gate::Flash, Gate::Sqnr, Gate::Npu});
  command.callback([flags, &run] {
    flags->gates.checkUsage();
    run = [flags] {
      return exitStatus(isForEthosN(flags->build.options) ? reportEthosN(*flags) : execute(*flags),
                        flags->build.options.model);
    };
  });
}

}  // namespace carina::app
