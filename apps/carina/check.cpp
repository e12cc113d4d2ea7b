// SPDX-License-Identifier: Apache-2.0
// carina check: what a program would need to run, and what would fail.
#include "report/check.hpp"

#include <memory>

#include "base/file.hpp"
#include "commands.hpp"
#include "console.hpp"

namespace carina::app {
namespace {

struct Flags {
  std::filesystem::path file;
  bool json = false;
};

Result<pipeline::Check> checkFile(const std::filesystem::path& path) {
  CARINA_TRY(auto file, MappedFile::open(path));
  auto check = pipeline::checkProgram(file->bytes());
  if (!check) return std::move(check).error().inFile(path.string());
  return check;
}

int check(const Flags& flags) {
  auto result = checkFile(flags.file);
  if (!result) return report(result.error());
  fmt::print("{}", flags.json ? report::checkJson(*result) : report::checkText(*result));
  return result->ok() ? 0 : 1;
}

}  // namespace

void addCheck(CLI::App& app, Run& run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("check", "Say what a program needs to run, and what would fail and why");
  command->add_option("FILE", flags->file, "Program: .pte of any maker")->required();
  command->add_flag("--json", flags->json, "Print JSON instead of text");
  command->callback([flags, &run] { run = [flags] { return check(*flags); }; });
}

}  // namespace carina::app
