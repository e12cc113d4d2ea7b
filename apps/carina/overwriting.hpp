// SPDX-License-Identifier: Apache-2.0
// Prevents commands from overwriting their inputs.
#pragma once

#include "base/result.hpp"
#include "command_line.hpp"

namespace carina::app {

/// Fails if an output of the chosen subcommand is a file that another of its arguments names, including by
/// another name: a symbolic or hard link.
Status refuseOverwriting(const Command& command);

}  // namespace carina::app
