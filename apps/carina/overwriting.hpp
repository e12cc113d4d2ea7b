// SPDX-License-Identifier: Apache-2.0
// No command overwrites what it reads.
#pragma once

#include "base/result.hpp"
#include "command_line.hpp"

namespace carina::app {

/// Fails when an output of the chosen subcommand is a file that another of its arguments names, also by
/// another name: a symbolic or hard link.
Status refuseOverwriting(const Command& command);

}  // namespace carina::app
