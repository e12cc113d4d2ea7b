// SPDX-License-Identifier: Apache-2.0
#include "overwriting.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "report/summary.hpp"

namespace carina::app {
namespace {

/// The options whose values are outputs. All others that name files are inputs.
constexpr std::array<std::string_view, 15> kOutputs{
    "--output",      "--json",   "--csv",    "--markdown",  "--junit",
    "--records",     "--etdump", "--trace",  "--trace-cpu", "--coverage",
    "--write-rules", "--header", "--linker", "--io-header", "--model-explorer"};
constexpr std::string_view kOutputFolder = "--report";

struct Argument {
  std::string option, path;
  bool isOutput = false;
  struct stat info {};
};

void addIfFile(std::vector<Argument>& arguments, const std::string& option, const std::string& path,
               bool isOutput) {
  Argument argument{option, path, isOutput, {}};
  if (::stat(path.c_str(), &argument.info) == 0 && S_ISREG(argument.info.st_mode))
    arguments.push_back(std::move(argument));
}

/// Every argument that is a regular file, and the existing files of a report.
void addFilesOf(const Command& command, std::vector<Argument>& arguments) {
  for (const auto& [name, group, positional, values] : command.given()) {
    const bool isOutput = std::find(kOutputs.begin(), kOutputs.end(), name) != kOutputs.end();
    for (const std::string& value : values) {
      if (name == kOutputFolder) {
        for (const std::string_view file : report::kReportFiles)
          addIfFile(arguments, name, (std::filesystem::path(value) / file).string(), true);
        continue;
      }
      addIfFile(arguments, name, value, isOutput);
      const size_t at = value.rfind('@');  // FILE@ADDRESS
      if (at != std::string::npos) addIfFile(arguments, name, value.substr(0, at), isOutput);
    }
  }
}

}  // namespace

Status refuseOverwriting(const Command& command) {
  std::vector<Argument> files;
  addFilesOf(command, files);
  for (const Argument& output : files) {
    for (const Argument& input : files) {
      const bool same = output.info.st_dev == input.info.st_dev && output.info.st_ino == input.info.st_ino;
      if (!output.isOutput || input.isOutput || !same) continue;
      return fail(Code::CannotWrite, "would overwrite the input {} ({})", input.path, input.option)
          .inFile(output.path)
          .withRemedy("name another file");
    }
  }
  return {};
}

}  // namespace carina::app
