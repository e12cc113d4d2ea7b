// SPDX-License-Identifier: Apache-2.0
// Instructions that change the flow of control, or that work on the stack and on special registers: each
// within code that continues in any case and records the effects in r0 to r12.
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
  std::function<void()> filler;  // an instruction that does not affect the flow
};
/// Writes an instruction of the row and the code around it.
void writeFlow(const Flow& flow, const CompiledEncoding& row);

/// Writes handlers into the image's vectors: of SVC (its number goes to r12; 255 makes the program
/// privileged), of HardFaults by BKPT (its code goes to r12; continues after it) and of UsageFaults (CFSR
/// goes to r12; continues after the instruction). Executors without exceptions do the same in their place.
void writeFlowHandlers(RandomImage& image);
/// Writes functions before the code, for far branches: they change a register and return to LR.
void writeTrampolines(CodeWriter& out);

/// The number of the SVC that makes a program privileged.
constexpr uint32_t kPrivilegedCall = 255;
/// CFSR of an undefined instruction, as the handler sees it.
constexpr uint32_t kCfsrUndefined = 1u << 16;

}  // namespace carina::cpu_m
