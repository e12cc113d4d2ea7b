// SPDX-License-Identifier: Apache-2.0
// Files and command line of the host: the machine of the debugger or simulator.
#pragma once

#include "carina/runtime.hpp"

namespace carina::firmware::semihosting {

/// The command line, zero-terminated; false if there is none or it does not fit.
bool commandLine(char* text, size_t size);

/// Reads the whole file `name` (zero-terminated) to `memory` and sets `bytes` to its size. False if it cannot
/// be opened or does not fit.
bool readFile(const char* name, rt::MutableBytes memory, size_t* bytes);
bool writeFile(const char* name, rt::Bytes bytes);

/// Ends the run with an exit code.
[[noreturn]] void exit(int code);

}  // namespace carina::firmware::semihosting
