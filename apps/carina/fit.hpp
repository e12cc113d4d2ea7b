// SPDX-License-Identifier: Apache-2.0
// The commands about boards; commands.hpp says how commands are declared.
#pragma once

#include "commands.hpp"

namespace carina::app {

void addFit(CommandLine& line, Run& run);
void addBoards(CommandLine& line, Run& run);

}  // namespace carina::app
