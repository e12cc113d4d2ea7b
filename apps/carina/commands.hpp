// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each declares its options and stores its action in `run`, which returns the exit status.
#pragma once

#include <functional>

#include "command_line.hpp"

namespace carina::app {

using Run = std::function<int()>;

void addCompile(CommandLine& line, Run& run);
void addGenerate(CommandLine& line, Run& run);
void addRun(CommandLine& line, Run& run);
void addVerify(CommandLine& line, Run& run);
void addCheck(CommandLine& line, Run& run);
void addOps(CommandLine& line, Run& run);
void addProfile(CommandLine& line, Run& run);
void addSweep(CommandLine& line, Run& run);
void addReport(CommandLine& line, Run& run);
void addDiff(CommandLine& line, Run& run);
void addCi(CommandLine& line, Run& run);
void addEvaluate(CommandLine& line, Run& run);
void addMerge(CommandLine& line, Run& run);
void addFit(CommandLine& line, Run& run);
void addBoards(CommandLine& line, Run& run);
void addFirmware(CommandLine& line, Run& run);
void addInspect(CommandLine& line, Run& run);
void addAssemble(CommandLine& line, Run& run);
void addOpt(CommandLine& line, Run& run);
void addTargets(CommandLine& line, Run& run);
void addExplain(CommandLine& line, Run& run);

}  // namespace carina::app
