// SPDX-License-Identifier: Apache-2.0
// The command line as a function.
#pragma once

namespace carina::app {

/// Runs `carina` with these arguments. Exit status: 0 done, 1 the input cannot be served, 2 wrong usage.
int program(int argc, char** argv);

}  // namespace carina::app
