// SPDX-License-Identifier: Apache-2.0
// Several programs whose constants lie in one region.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/compiler.hpp"

namespace carina::compiler {

/// What a region for all of them takes, beside a region for each (equal programs count once).
struct SharedBytes {
  int64_t together = 0, apart = 0;
};

/// Gives all programs, which are for one machine, the same constants: what their operations read is there
/// once, however many read it, and the commands read it there. What a program computes and takes to do it
/// stays the same. Nothing changes where that would save less than a tenth: then `together` equals `apart`.
/// Fails on commands that read what is not in the constants.
Result<SharedBytes> shareConstants(std::span<CompiledProgram* const> programs);

}  // namespace carina::compiler
