// SPDX-License-Identifier: Apache-2.0
// carina diff: two programs or measurements, layer by layer.
#include "report/diff.hpp"

#include <memory>

#include "commands.hpp"
#include "console.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "result_files.hpp"

namespace carina::app {
namespace {

struct DiffFlags {
  std::filesystem::path a, b;
  pipeline::Options options;
  ResultPath json, markdown, csv;
  bool all = false;
  GateOptions gates;
};

Result<int> execute(DiffFlags& flags) {
  CARINA_RETURN_IF_ERROR(checkResults({flags.json, flags.markdown, flags.csv, flags.gates.junit}));
  CARINA_TRY(pipeline::Ledger a, pipeline::readLedger(flags.a, flags.options));
  CARINA_TRY(pipeline::Ledger b, pipeline::readLedger(flags.b, flags.options));
  const pipeline::LedgerDiff diff = pipeline::diffLedgers(std::move(a), std::move(b));
  CARINA_RETURN_IF_ERROR(flags.gates.check(pipeline::measuredOf(diff.b, flags.options.configFile)));
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.json, report::diffJson(diff)));
  CARINA_RETURN_IF_ERROR(files.add(flags.markdown, report::diffMarkdown(diff, flags.all)));
  CARINA_RETURN_IF_ERROR(files.add(flags.csv, report::diffCsv(diff)));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina diff", files));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print(report::diffText(diff, flags.all));
  return flags.gates.finish(0);
}

/// A program or JSON file, or the directory of a report.
ValueRule fileOrFolder() {
  const ValueRule file = inputFile();
  return {[file](std::string& path) {
            std::error_code ignored;
            return std::filesystem::is_directory(path, ignored) ? std::string() : file.apply(path);
          },
          "FILE|DIR"};
}

}  // namespace

void addDiff(CommandLine& line, Run& run) {
  auto flags = std::make_shared<DiffFlags>();
  Command command = line.add(
      "diff", "Compare two programs, reports or profiles layer by layer: cycles, bytes, SQNR, placement");
  const std::string what = "program (.pte, compiled .tflite, blob), JSON of profile, report of compile";
  command.option("A", flags->a, "Before: " + what).transform(fileOrFolder()).required();
  command.option("B", flags->b, "After: the same").transform(fileOrFolder()).required();
  command.flag("--all", flags->all, "Show equal layers, too");
  addResultOption(command, "--json", flags->json, "All layers as JSON");
  addResultOption(command, "--markdown", flags->markdown, "Tables for a pull request");
  addResultOption(command, "--csv", flags->csv, "All layers as comma-separated values");
  command.option("--target", flags->options.target, "NPU of bare commands, which do not identify it")
      .transform(targetName());
  command.option("--system-config", flags->options.systemConfig,
                 "Memories and clock for counting the cycles of programs; default: each program's own");
  command.option("--memory-mode", flags->options.memoryMode,
                 "What lives in which memory; default: each program's own");
  command
      .option("--config", flags->options.configFile,
              "vela.ini with further system configurations and memory modes")
      .transform(inputFile())
      .check(existingFile());
  using Gate = GateOptions::Gate;
  flags->gates.declare(command,
                       {Gate::Cycles, Gate::InferenceMs, Gate::Sram, Gate::Flash, Gate::Sqnr, Gate::Npu});
  command.callback([flags, &run] {
    flags->gates.checkUsage();
    run = [flags] { return exitStatus(execute(*flags)); };
  });
}

}  // namespace carina::app
