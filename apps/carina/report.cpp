// SPDX-License-Identifier: Apache-2.0
// carina report: a profile as a page for a browser.
#include <memory>

#include "base/file.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "report/page.hpp"
#include "report/summary.hpp"

namespace carina::app {
namespace {

struct Flags {
  BuildOptions build;
  std::filesystem::path output;
  report::PageAttachments attachments;
};

Status execute(const Flags& flags) {
  CARINA_RETURN_IF_ERROR(checkOutputs({flags.output}));
  CARINA_TRY(const pipeline::Profile profile, pipeline::profile(flags.build.finish()));
  warn(profile.warnings);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(profile.times));
  CARINA_TRY(const std::string page, report::profilePage(profile, flags.attachments));
  OutputFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.output, page));
  return files.commit();
}

}  // namespace

void addReport(CommandLine& line, Run& run) {
  auto flags = std::make_shared<Flags>();
  Command command = line.add(
      "report",
      "One page for a browser: time line, memory, layers, roofline and graph of a network or program");
  flags->build.declare(command, BuildOptions::Takes::NetworksAndPrograms);
  command.option("-o,--output", flags->output, "Where the page goes (.html)").required();
  command.option("--sweep", flags->attachments.sweep, "JSON of carina sweep, shown as other targets");
  command.option("--against", flags->attachments.against,
                 "JSON of carina profile of another build, compared layer by layer");
  command.callback([flags, &run] {
    run = [flags] {
      auto status = execute(*flags);
      return status.ok() ? 0 : report(status.error(), flags->build.options.model);
    };
  });
}

}  // namespace carina::app
