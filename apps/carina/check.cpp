// SPDX-License-Identifier: Apache-2.0
// carina check: what a program would need to run, and what would fail.
#include "report/check.hpp"

#include <memory>

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "result_files.hpp"
#include "tflite/model.hpp"

namespace carina::app {
namespace {

struct CheckFlags {
  std::filesystem::path file;
  std::vector<std::filesystem::path> tensorData;
  ResultPath json;
  GateOptions gates;
};

/// The result, as text and as JSON.
struct Found {
  bool ok = false;
  std::string text, json;
  pipeline::Measured measured;
};

template <typename Check>
Found foundIn(const Check& check) {
  return {check.ok(), report::checkText(check), report::checkJson(check), {}};
}

/// A .tflite is entirely on the NPU if its other operators only convert inputs and outputs.
void recordPlacement(const pipeline::TfliteCheck& check, pipeline::Measured& measured) {
  measured.wholly = check.calls > 0;
  if (check.calls == 0) measured.onCpu = "the program calls no NPU";
  for (const pipeline::CheckedTfliteOperator& op : check.operators) {
    if (op.name == "ethos-u" || op.name == "QUANTIZE" || op.name == "DEQUANTIZE" || !*measured.wholly)
      continue;
    measured.wholly = false;
    measured.onCpu = "operator " + op.name;
  }
}

/// The figures that gates check; costly ones only if a gate needs them.
Status measure(ByteSpan file, const CheckFlags& flags, pipeline::Measured& measured) {
  measured.subject = flags.file.filename().string();
  measured.flash = static_cast<int64_t>(file.size());
  if (flags.gates.gates.maxSram) CARINA_RETURN_IF_ERROR(pipeline::recordSram(flags.file, {}, measured));
  return {};
}

Result<Found> checkBytes(ByteSpan file, const CheckFlags& flags) {
  if (tflite::isTflite(file)) {
    CARINA_TRY(const pipeline::TfliteCheck check, pipeline::checkTflite(file));
    Found found = foundIn(check);
    recordPlacement(check, found.measured);
    CARINA_RETURN_IF_ERROR(measure(file, flags, found.measured));
    return found;
  }
  CARINA_TRY(const auto tensorData, pte::readTensorDataFiles(flags.tensorData));
  CARINA_TRY(const pipeline::Check check, pipeline::checkProgram(file, tensorData));
  Found found = foundIn(check);
  pipeline::recordPlacement(file, found.measured);
  CARINA_RETURN_IF_ERROR(measure(file, flags, found.measured));
  return found;
}

Result<Found> checkFile(const CheckFlags& flags) {
  CARINA_TRY(auto file, MappedFile::open(flags.file));
  auto found = checkBytes(file->bytes(), flags);
  if (!found) return std::move(found).error().inFile(flags.file.string()).withRemedy(kDamagedRemedy);
  return found;
}

int check(CheckFlags& flags) {
  if (const auto status = checkResults({flags.json, flags.gates.junit}); !status.ok())
    return report(status.error());
  auto result = checkFile(flags);
  if (!result) return report(result.error(), flags.file);
  ResultFiles files;
  Status status = flags.gates.check(result->measured);
  if (status.ok()) status = files.add(flags.json, result->json);
  if (status.ok()) status = flags.gates.addJunit("carina check", files);
  if (status.ok()) status = files.commit();
  if (!status.ok()) return report(status.error());
  files.print(result->text);
  return flags.gates.finish(result->ok ? 0 : 1);
}

}  // namespace

void addCheck(CommandLine& line, Run& run) {
  auto flags = std::make_shared<CheckFlags>();
  Command command = line.add("check", "Report what a program needs to run, and what would fail and why");
  command.option("FILE", flags->file, "Program: .pte, .bpte or .tflite from any compiler")
      .transform(inputFile())
      .required();
  command
      .option("--tensor-data", flags->tensorData, "Files (.ptd) with data that the program refers to by name")
      .transform(inputFile());
  addResultOption(command, "--json", flags->json, "The same as JSON");
  using Gate = GateOptions::Gate;
  flags->gates.declare(command, {Gate::Sram, Gate::Flash, Gate::Npu});
  command.callback([flags, &run] {
    flags->gates.checkUsage();
    run = [flags] { return check(*flags); };
  });
}

}  // namespace carina::app
