// SPDX-License-Identifier: Apache-2.0
// Several programs with their constants in one region.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/compiler.hpp"

namespace carina::compiler {

/// Bytes of one region for all of them, and of a region for each (equal programs count once).
struct SharedBytes {
  int64_t together = 0, apart = 0;
};

/// Gives all programs, which are for one machine, the same constants: what their operations read is stored
/// once, however many read it, and the commands read it there. The results and cycles of the programs stay
/// the same. Changes nothing if that would save less than a tenth: then `together` equals `apart`. Fails on
/// commands that read outside the constants.
Result<SharedBytes> shareConstants(std::span<CompiledProgram* const> programs);

}  // namespace carina::compiler
