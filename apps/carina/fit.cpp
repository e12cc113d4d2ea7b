// SPDX-License-Identifier: Apache-2.0
// carina fit: whether a program fits on a board. carina boards: lists the boards.
#include "report/fit.hpp"

#include <memory>

#include "base/file.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "result_files.hpp"

namespace carina::app {
namespace {

struct FitFlags {
  BuildOptions build;
  std::string board;
  int64_t stack = 0;
  std::filesystem::path output, header, linker;
  ResultPath json, csv;
  GateOptions gates;
};

Result<int> execute(FitFlags& flags) {
  CARINA_RETURN_IF_ERROR(checkResults({flags.json, flags.csv, flags.gates.junit}));
  CARINA_RETURN_IF_ERROR(checkOutputs({flags.output, flags.header, flags.linker}));
  firmware::FitOptions options;
  options.build = flags.build.finish();
  options.build.estimateAccuracy = flags.gates.gates.minSqnr.has_value();
  if (!options.build.configFile.empty() || !options.build.systemConfig.empty()) {
    return fail(Code::OptionDoesNotApply, "the board determines the memory speeds")
        .at(options.build.configFile.empty() ? "--system-config" : "--config")
        .withRemedy("leave it out");
  }
  options.stackBytes = flags.stack;
  options.core = flags.build.cpu;
  CARINA_TRY(options.board, firmware::findBoardRow(flags.board));
  CARINA_TRY(const firmware::Fit fit, firmware::fit(options));
  warn(fit.warnings);
  CARINA_RETURN_IF_ERROR(flags.gates.check(fit.measured));
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.json, report::fitJson(fit)));
  CARINA_RETURN_IF_ERROR(files.add(flags.csv, report::fitCsv(fit)));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina fit", files));
  // A program that does not fit has no addresses, and one that misses a gate is not linked.
  if (!flags.output.empty() && !fit.isNetwork) {
    return fail(Code::OptionDoesNotApply, "the program is already compiled")
        .at("--output")
        .withRemedy("leave it out");
  }
  if (fit.fits() && !flags.gates.missed()) {
    if (!flags.output.empty()) CARINA_RETURN_IF_ERROR(files.files().add(flags.output, fit.program));
    if (!flags.header.empty())
      CARINA_RETURN_IF_ERROR(files.files().add(flags.header, firmware::memoryHeader(fit)));
    if (!flags.linker.empty())
      CARINA_RETURN_IF_ERROR(files.files().add(flags.linker, firmware::linkerFragment(fit)));
  }
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print(report::fitText(fit));
  const int status = flags.gates.finish(0);
  if (fit.fits()) return status;
  return fail(Code::DoesNotFit, "{} bytes too many for {}", fit.over(), fit.board->name)
      .inFile(options.build.model.string())
      .withRemedy(fit.fixes.empty() || !fit.fixes.front().fits
                      ? "use a smaller network, or a board with more memory ('carina boards')"
                      : "it fits with " + fit.fixes.front().change);
}

}  // namespace

void addFit(CommandLine& line, Run& run) {
  auto flags = std::make_shared<FitFlags>();
  Command command = line.add("fit", "Report whether a network or program fits a board, and what would help");
  flags->build.declare(command, BuildOptions::Takes::NetworksAndPrograms);
  command.option("--board", flags->board, "The board (see 'carina boards')")
      .required()
      .check([](const std::string& name) {
        const auto board = firmware::findBoardRow(name);
        if (board.ok()) return std::string();
        const Diagnostic& what = board.error().diagnostics().front();
        return what.message + "\n  " + what.remedy;
      });
  command.option("--stack", flags->stack, "Bytes of stack; default: what the program's kernels need")
      .transform(byteCount());
  command.option("-o,--output", flags->output, "Write the program that was compiled for the board (.pte)");
  command.option("--header", flags->header,
                 "Write sizes and memory sections as a C header (carina_memory.h)");
  command.option("--linker", flags->linker, "Write a linker script fragment with a section for each block");
  addResultOption(command, "--json", flags->json, "The table as JSON");
  addResultOption(command, "--csv", flags->csv, "The table as comma-separated values");
  using Gate = GateOptions::Gate;
  flags->gates.declare(command,
                       {Gate::Cycles, Gate::InferenceMs, Gate::Sram, Gate::Flash, Gate::Sqnr, Gate::Npu});
  command.callback([flags, &run] {
    flags->gates.checkUsage();
    run = [flags] { return exitStatus(execute(*flags), flags->build.options.model); };
  });
}

void addBoards(CommandLine& line, Run& run) {
  struct Results {
    ResultPath json, csv;
  };
  auto results = std::make_shared<Results>();
  Command command = line.add("boards", "List boards with their NPUs and memories");
  addResultOption(command, "--json", results->json,
                  "The boards as JSON, with system configurations and sources");
  addResultOption(command, "--csv", results->csv, "Their memories as comma-separated values");
  command.callback([results, &run] {
    run = [results] {
      ResultFiles files;
      Status status = checkResults({results->json, results->csv});
      if (status.ok()) status = files.add(results->json, report::boardsJson());
      if (status.ok()) status = files.add(results->csv, report::boardsCsv());
      if (status.ok()) status = files.commit();
      if (!status.ok()) return report(status.error());
      files.print(report::boardsText());
      return 0;
    };
  });
}

}  // namespace carina::app
