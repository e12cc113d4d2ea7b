// SPDX-License-Identifier: Apache-2.0
// carina: one program from an exported network to what runs on the NPU. Exit status: 0 done, 1 the input
// cannot be served, 2 wrong usage.
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "commands.hpp"
#include "console.hpp"
#include "usage.hpp"

namespace {

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
