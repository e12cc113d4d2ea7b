// SPDX-License-Identifier: Apache-2.0
// Instructions that do not simply go on behind themselves, or that work on the stack and on special
// registers: each within code that leads on whatever happens, and that leaves behind in r0 to r12 what it
// did.
#pragma once

#include <functional>

#include "code_writer.hpp"

namespace carina::cpu_m {

/// Whether writeFlow knows how to use an encoding.
bool isFlow(const CompiledEncoding& row);

struct Flow {
  CodeWriter& out;
  uint32_t features;
  uint32_t scratch;              // RandomImage::kScratch bytes that may be written
  std::function<void()> filler;  // an instruction of no consequence for where it goes on
};
/// An instruction of the row with what belongs to it.
void writeFlow(const Flow& flow, const CompiledEncoding& row);

/// Handlers of SVC (its number goes to r12; 255 makes the program privileged), of HardFaults of BKPT (its
/// code goes to r12; it goes on behind it) and of UsageFaults (CFSR goes to r12; it goes on behind the
/// instruction). They lie in the image's vectors; who executes the image without exceptions does the same in
/// their place.
void writeFlowHandlers(RandomImage& image);
/// Functions in front of the code, for branches that go far: they change a register and return to LR.
void writeTrampolines(CodeWriter& out);

/// The number of the SVC that makes a program privileged.
constexpr uint32_t kPrivilegedCall = 255;
/// CFSR of an undefined instruction, as the handler sees it.
constexpr uint32_t kCfsrUndefined = 1u << 16;

}  // namespace carina::cpu_m
