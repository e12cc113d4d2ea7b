// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <iterator>
#include <new>
#include <string>
#include <string_view>

#include "base/signals.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "overwriting.hpp"
#include "usage.hpp"
#include "version.hpp"

namespace carina::app {
namespace {

constexpr const char* kFirstSteps =
    "First steps:\n"
    "  carina compile model.pt2 -o model.pte --target ethos-u85-256 --calibrate samples.npz\n"
    "  carina run model.pte --input samples.npz\n"
    "  carina ops model.pt2 --target ethos-u85-256\n";

/// The input file of the chosen subcommand.
std::string inputOf(const std::vector<Command>& chosen) {
  for (const Command& command : chosen) {
    for (const GivenOption& option : command.given()) {
      if (option.positional) return option.values.front();
    }
  }
  return {};
}

constexpr const char* kOutOfMemory = "out of memory";
constexpr const char* kOutOfMemoryRemedy = "the network needs more memory than this machine has free";

/// --diagnostics, before or after the subcommand. It is looked up in advance, so that wrong usage is reported
/// in that form as well.
void addDiagnostics(CommandLine& line) {
  line.optionOfAll("--diagnostics",
                   "How errors and warnings are printed on stderr: text or json (one object per line)")
      .check(listedWord({"text", "json"}))
      .valueName("FORM");
}

bool wantsJson(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--diagnostics=json") return true;
    if (argument == "--diagnostics" && i + 1 < argc) return std::string_view(argv[i + 1]) == "json";
  }
  return false;
}

struct NamedCommand {
  std::string_view name;
  void (*declare)(CommandLine& line, Run& run);
};
constexpr NamedCommand kCommands[] = {
    {"compile", addCompile}, {"run", addRun},           {"generate", addGenerate}, {"verify", addVerify},
    {"check", addCheck},     {"ops", addOps},           {"profile", addProfile},   {"sweep", addSweep},
    {"report", addReport},   {"diff", addDiff},         {"evaluate", addEvaluate}, {"ci", addCi},
    {"merge", addMerge},     {"fit", addFit},           {"boards", addBoards},     {"firmware", addFirmware},
    {"inspect", addInspect}, {"assemble", addAssemble}, {"opt", addOpt},           {"targets", addTargets},
    {"explain", addExplain},
};

/// All commands, or the one that the first argument names: declaring the options of the others would take a
/// third of the program's startup time. --version needs none.
void declareCommands(CommandLine& line, Run& run, std::string_view first) {
  if (first == "--version") return;
  const auto* named = std::find_if(std::begin(kCommands), std::end(kCommands),
                                   [&](const NamedCommand& command) { return command.name == first; });
  if (named != std::end(kCommands)) return named->declare(line, run);
  for (const NamedCommand& command : kCommands) command.declare(line, run);
}

/// Chooses and runs a subcommand. `outOfMemory` receives the message, including the file, for memory that
/// runs out in it.
int parseAndRun(int argc, char** argv, std::string& outOfMemory) {
  CommandLine line("carina", "Carina takes PyTorch networks to Arm Ethos NPUs.", versionLine());
  if (wantsJson(argc, argv)) setDiagnosticsFormat(DiagnosticsFormat::Json);
  Run run;
  declareCommands(line, run, argc > 1 ? argv[1] : "");
  addDiagnostics(line);
  line.footer(kFirstSteps);
  if (argc < 2) {
    std::cerr << line.help();
    return 2;
  }
  if (const std::string error = unknownCommand(line.commandNames(), argv[1]); !error.empty()) {
    std::cerr << error;
    return 2;
  }
  if (const auto status = line.parse(argc, argv)) return *status;
  const std::vector<Command> chosen = line.chosen();
  for (const Command& command : chosen) {
    if (auto status = refuseOverwriting(command); !status.ok()) return report(status.error());
  }
  const std::string file = inputOf(chosen);
  outOfMemory = diagnosticText("error", {kOutOfMemory, kOutOfMemoryRemedy, file, "", Code::OutOfMemory});
  return run();
}

// The message for running out of memory, prepared while there is some.
std::string outOfMemory;  // NOLINT(cert-err58-cpp): an empty string needs none

void sayOutOfMemory() noexcept {
  if (!outOfMemory.empty()) {
    std::fputs(outOfMemory.c_str(), stderr);
    return;
  }
  for (const char* part : {"carina: error[E0804]: ", kOutOfMemory, "\n  ", kOutOfMemoryRemedy, "\n"})
    std::fputs(part, stderr);
}

/// Some libraries need memory where no exception may escape, for example nlohmann::json in its destructor.
[[noreturn]] void onTerminate() {
  if (const std::exception_ptr current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const std::bad_alloc&) {
      removeTemporaries();
      sayOutOfMemory();
      std::_Exit(1);
    } catch (...) {
    }
  }
  removeTemporaries();
  std::abort();
}

}  // namespace

int program(int argc, char** argv) {
  std::set_terminate(onTerminate);
  try {
    return parseAndRun(argc, argv, outOfMemory);
  } catch (const std::bad_alloc&) {
    sayOutOfMemory();
    return 1;
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return 1;  // reported by closeStandardOutput()
    return report(fail(Code::None, "{}", error.what()));
  }
}

}  // namespace carina::app
