// SPDX-License-Identifier: Apache-2.0
// carina: one program from an exported network to what runs on the NPU. Exit status: 0 done, 1 the input
// cannot be served, 2 wrong usage.
#include <exception>
#include <new>

#include "commands.hpp"
#include "console.hpp"

int main(int argc, char** argv) {
  using namespace carina::app;
  CLI::App app("Carina takes PyTorch networks to Arm Ethos NPUs.", "carina");
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
