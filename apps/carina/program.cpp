// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "base/signals.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "fit.hpp"
#include "overwriting.hpp"
#include "usage.hpp"
#include "version.hpp"

namespace {

constexpr const char* kFirstSteps =
    "First steps:\n"
    "  carina compile model.pt2 -o model.pte --target ethos-u85-256 --calibrate samples.npz\n"
    "  carina run model.pte --input samples.npz\n"
    "  carina ops model.pt2 --target ethos-u85-256\n";

/// The file that the chosen subcommand is about.
std::string inputOf(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_positional() && option->count() > 0) return option->results().front();
    }
  }
  return {};
}

constexpr const char* kOutOfMemory = "out of memory";
constexpr const char* kOutOfMemoryRemedy = "the network needs more memory than this machine has free";

/// --diagnostics, in front of or behind the subcommand. It is looked for beforehand, so that wrong usage is
/// reported in that form, too.
void addDiagnostics(CLI::App& app) {
  app.add_option("--diagnostics",
                 "How errors and warnings are printed on stderr: text or json (one object per line)")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORM");
  for (CLI::App* command : app.get_subcommands({})) command->fallthrough();
}

bool wantsJson(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--diagnostics=json") return true;
    if (argument == "--diagnostics" && i + 1 < argc) return std::string_view(argv[i + 1]) == "json";
  }
  return false;
}

/// Chooses and runs a subcommand. `outOfMemory` becomes what to say, with the file, when memory runs out in
/// it.
int parseAndRun(int argc, char** argv, std::string& outOfMemory) {
  using namespace carina::app;
  CLI::App app("Carina takes PyTorch networks to Arm Ethos NPUs.", "carina");
  app.failure_message(usageError);
  app.require_subcommand(1);
  app.set_version_flag("--version", versionLine());
  if (wantsJson(argc, argv)) setDiagnosticsFormat(DiagnosticsFormat::Json);
  Run run;
  addCompile(app, run);
  addRun(app, run);
  addGenerate(app, run);
  addVerify(app, run);
  addCheck(app, run);
  addOps(app, run);
  addProfile(app, run);
  addSweep(app, run);
  addReport(app, run);
  addDiff(app, run);
  addEvaluate(app, run);
  addCi(app, run);
  addMerge(app, run);
  addFit(app, run);
  addBoards(app, run);
  addFirmware(app, run);
  addInspect(app, run);
  addAssemble(app, run);
  addOpt(app, run);
  addTargets(app, run);
  addExplain(app, run);
  addDiagnostics(app);
  app.footer(kFirstSteps);  // last: subcommands would inherit it
  if (argc < 2) {
    std::cerr << app.help();
    return 2;
  }
  if (const std::string error = unknownCommand(app, argv[1]); !error.empty()) {
    std::cerr << error;
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const CLI::App* command : app.get_subcommands()) {
    if (auto status = refuseOverwriting(*command); !status.ok()) return report(status.error());
  }
  const std::string file = inputOf(app);
  outOfMemory =
      diagnosticText("error", {kOutOfMemory, kOutOfMemoryRemedy, file, "", carina::Code::OutOfMemory});
  return run();
}

}  // namespace

namespace carina::app {
namespace {

// What to say when memory runs out: made while there is some.
std::string outOfMemory;  // NOLINT(cert-err58-cpp): an empty string needs none

void sayOutOfMemory() noexcept {
  if (!outOfMemory.empty()) {
    std::fputs(outOfMemory.c_str(), stderr);
    return;
  }
  for (const char* part : {"carina: error[E0804]: ", kOutOfMemory, "\n  ", kOutOfMemoryRemedy, "\n"})
    std::fputs(part, stderr);
}

/// Some libraries need memory where no exception may leave them, nlohmann::json in its destructor for one.
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
    if (std::ferror(stdout) != 0) return 1;  // closeStandardOutput() says what it is
    return report(fail(Code::None, "{}", error.what()));
  }
}

}  // namespace carina::app
