// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each declares its options on `app` and stores what to do in `run`, which returns the exit
// status.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace carina::app {

using Run = std::function<int()>;

void addCompile(CLI::App& app, Run& run);
void addGenerate(CLI::App& app, Run& run);
void addRun(CLI::App& app, Run& run);
void addVerify(CLI::App& app, Run& run);
void addCheck(CLI::App& app, Run& run);
void addOps(CLI::App& app, Run& run);
void addProfile(CLI::App& app, Run& run);
void addSweep(CLI::App& app, Run& run);
void addReport(CLI::App& app, Run& run);
void addDiff(CLI::App& app, Run& run);
void addCi(CLI::App& app, Run& run);
void addEvaluate(CLI::App& app, Run& run);
void addMerge(CLI::App& app, Run& run);
void addFirmware(CLI::App& app, Run& run);
void addInspect(CLI::App& app, Run& run);
void addAssemble(CLI::App& app, Run& run);
void addOpt(CLI::App& app, Run& run);
void addTargets(CLI::App& app, Run& run);
void addExplain(CLI::App& app, Run& run);

}  // namespace carina::app
