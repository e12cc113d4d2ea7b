// SPDX-License-Identifier: Apache-2.0
// carina check: what a program would need to run, and what would fail.
#include "report/check.hpp"

#include <memory>

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "option_values.hpp"
#include "result_files.hpp"
#include "tflite/model.hpp"

namespace carina::app {
namespace {

struct Flags {
  std::filesystem::path file;
  std::vector<std::filesystem::path> tensorData;
  ResultPath json;
};

/// What was found, for people and as JSON.
struct Found {
  bool ok = false;
  std::string text, json;
};

template <typename Check>
Found foundIn(const Check& check) {
  return {check.ok(), report::checkText(check), report::checkJson(check)};
}

Result<Found> checkBytes(ByteSpan file, const Flags& flags) {
  if (tflite::isTflite(file)) {
    CARINA_TRY(const pipeline::TfliteCheck check, pipeline::checkTflite(file));
    return foundIn(check);
  }
  CARINA_TRY(const auto tensorData, pte::readTensorDataFiles(flags.tensorData));
  CARINA_TRY(const pipeline::Check check, pipeline::checkProgram(file, tensorData));
  return foundIn(check);
}

Result<Found> checkFile(const Flags& flags) {
  CARINA_TRY(auto file, MappedFile::open(flags.file));
  auto found = checkBytes(file->bytes(), flags);
  if (!found) return std::move(found).error().inFile(flags.file.string()).withRemedy(kDamagedRemedy);
  return found;
}

int check(const Flags& flags) {
  if (const auto status = checkResults({flags.json}); !status.ok()) return report(status.error());
  auto result = checkFile(flags);
  if (!result) return report(result.error(), flags.file);
  ResultFiles files;
  Status status = files.add(flags.json, result->json);
  if (status.ok()) status = files.commit();
  if (!status.ok()) return report(status.error());
  files.print(result->text);
  return result->ok ? 0 : 1;
}

}  // namespace

void addCheck(CommandLine& line, Run& run) {
  auto flags = std::make_shared<Flags>();
  Command command = line.add("check", "Say what a program needs to run, and what would fail and why");
  command.option("FILE", flags->file, "Program: .pte, .bpte or .tflite of any maker")
      .transform(inputFile())
      .required();
  command
      .option("--tensor-data", flags->tensorData, "Files (.ptd) with data that the program refers to by name")
      .transform(inputFile());
  addResultOption(command, "--json", flags->json, "The same as JSON");
  command.callback([flags, &run] { run = [flags] { return check(*flags); }; });
}

}  // namespace carina::app
