// SPDX-License-Identifier: Apache-2.0
// carina: one program from an exported network to what runs on the NPU. Exit status: 0 done, 1 the input
// cannot be served, 2 wrong usage.
#include <algorithm>
#include <exception>
#include <iostream>
#include <new>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "console.hpp"

namespace {

/// Letters to insert, delete or replace to make `b` of `a`.
size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// The usage error of a first argument that names no subcommand; empty when it names one or is an option.
std::string unknownCommand(const CLI::App& app, std::string_view word) {
  if (word.starts_with('-')) return {};
  std::string nearest;
  size_t least = 3;  // farther words are not a slip of the finger
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const size_t distance = editDistance(word, command->get_name());
    if (distance == 0) return {};
    if (distance < least) nearest = command->get_name(), least = distance;
  }
  return "carina: error: unknown command '" + std::string(word) + "'\n" +
         (nearest.empty() ? "  carina --help lists the commands\n"
                          : "  did you mean 'carina " + nearest + "'?\n");
}

/// Usage errors in the form of all others.
std::string usageError(const CLI::App* app, const CLI::Error& error) {
  std::string command = "carina";
  for (const CLI::App* chosen : app->get_subcommands()) command += " " + chosen->get_name();
  std::string what = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    what = "unexpected arguments:";
    for (const std::string& argument : app->remaining(true)) what += " " + argument;
  }
  return "carina: error: " + what + "\n  " + command + " --help lists the options\n";
}

constexpr const char* kFirstSteps =
    "First steps:\n"
    "  carina compile model.pt2 -o model.pte --target ethos-u85-256 --calibrate samples.npz\n"
    "  carina run model.pte --input samples.npz\n"
    "  carina ops model.pt2 --target ethos-u85-256\n";

}  // namespace

int main(int argc, char** argv) {
  using namespace carina::app;
  CLI::App app("Carina takes PyTorch networks to Arm Ethos NPUs.", "carina");
  app.failure_message(usageError);
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("carina ") + CARINA_VERSION);
  Run run;
  addCompile(app, run);
  addRun(app, run);
  addVerify(app, run);
  addCheck(app, run);
  addOps(app, run);
  addProfile(app, run);
  addSweep(app, run);
  addFirmware(app, run);
  addInspect(app, run);
  addAssemble(app, run);
  addTargets(app, run);
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
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return report(
        carina::fail("out of memory").withRemedy("the model needs more memory than this machine has free"));
  } catch (const std::exception& error) {
    return report(carina::fail("{}", error.what()));
  }
}
