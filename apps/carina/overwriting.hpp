// SPDX-License-Identifier: Apache-2.0
// No command overwrites what it reads.
#pragma once

#include <CLI/CLI.hpp>

#include "base/result.hpp"

namespace carina::app {

/// Fails when an output of the chosen subcommand is a file that another of its arguments names, also by
/// another name: a symbolic or hard link.
Status refuseOverwriting(const CLI::App& command);

}  // namespace carina::app
