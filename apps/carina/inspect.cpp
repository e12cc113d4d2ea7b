// SPDX-License-Identifier: Apache-2.0
// carina inspect: what is in a file, and whether its command streams are sound.
#include "pipeline/inspect.hpp"

#include <memory>

#include "commands.hpp"
#include "console.hpp"
#include "option_values.hpp"
#include "report/check.hpp"
#include "report/contents.hpp"
#include "result_files.hpp"

namespace carina::app {
namespace {

struct InspectFlags {
  std::filesystem::path file;
  pipeline::InspectOptions options;
  bool check = false;
  ResultPath json;
};

Status show(const InspectFlags& flags) {
  if (flags.json.empty()) {
    CARINA_TRY(const std::string text, pipeline::inspectFile(flags.file, flags.options));
    fmt::print("{}", text);
    return {};
  }
  CARINA_RETURN_IF_ERROR(checkResults({flags.json}));
  CARINA_TRY(const pipeline::FileContents contents, pipeline::readContents(flags.file, flags.options));
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.json, report::contentsJson(contents)));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print("");
  return {};
}

Status check(const InspectFlags& flags) {
  CARINA_RETURN_IF_ERROR(checkResults({flags.json}));
  CARINA_TRY(const pipeline::CheckedFile checked, pipeline::checkFile(flags.file, flags.options));
  std::string text;
  for (const std::string& finding : checked.findings) text += finding + "\n";
  const auto count = [](size_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  const std::string findings =
      checked.findings.empty() ? "no findings" : count(checked.findings.size(), "finding");
  text += fmt::format("{} in {} of {}\n", findings, count(checked.streams, "command stream"),
                      count(checked.words, "word"));
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.json, report::checkJson(checked)));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print(text);
  if (checked.findings.empty()) return {};
  return fail(Code::Findings, "{} in its command streams", findings).inFile(flags.file.string());
}

}  // namespace

void addInspect(CommandLine& line, Run& run) {
  auto flags = std::make_shared<InspectFlags>();
  Command command = line.add("inspect", "Show what is in a file, and check its command streams");
  command
      .option("FILE", flags->file,
              "Any of .pt2 .tosa .tflite .pte .bpte .ptd .npz .npy .encn .elf, a delegate blob, a driver "
              "payload, bare commands")
      .transform(inputFile())
      .required();
  const Option commands = command.flag("--commands", flags->options.commandsOnly,
                                       "Only the command streams, as text for carina assemble");
  command
      .flag("--check", flags->check,
            "Check the command streams instead of showing them; exit status 1 if there are findings")
      .excludes(commands);
  addResultOption(command, "--json", flags->json,
                  "The content of the file, or with --check the findings, as JSON")
      .excludes(commands);
  command.option("--part", flags->options.part, "Only this command stream of the file, counted from 0");
  command.option("--target", flags->options.target, "NPU of bare commands, which do not identify it")
      .transform(targetName());
  command.callback([flags, &run] {
    run = [flags] { return exitStatus(flags->check ? check(*flags) : show(*flags), flags->file); };
  });
}

}  // namespace carina::app
