// SPDX-License-Identifier: Apache-2.0
// What a call of a CPU kernel has to do, counted: the quantities that its cycles are a sum of. The loops that
// are counted here are those of runtime/kernels.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "pte/program.hpp"

namespace carina::cpu {

enum class Work : uint8_t {
  Call,       // 1
  Element,    // elements that are computed or moved one by one
  Chunk,      // stretches of at most 32 elements that are computed at a time
  Run,        // stretches in which every operand goes on evenly; lines of a normalization
  Converted,  // elements of operands that go through a buffer: other types than float32, steps other than 1
  Stored,     // elements of the result that go through a buffer
  Output,     // elements of the result, where each is a loop of its own
  Mac,        // multiply-accumulates within the input
  Tail,   // of dot products, what is left of groups of four; of bytes, instructions for what is left of 64
  Tap,    // elements of windows that are looked at
  Piece,  // boxes that are moved at once; lines of positions that are walked one by one
  Byte,   // bytes that are moved as they lie
};
constexpr size_t kWorks = 12;
/// Their names in kernel_costs.json, in this order.
extern const std::array<std::string_view, kWorks> kWorkNames;

struct CallWork {
  std::string kernel;  // "aten::add.out"
  std::string types;   // "float32", "float32>int8", "float32 transposed"
  std::array<double, kWorks> counts{};

  double& operator[](Work work) { return counts[static_cast<size_t>(work)]; }
  double operator[](Work work) const { return counts[static_cast<size_t>(work)]; }
};

/// Of a call in a method that the verifier has seen. Arguments that no kernel would take count as absent.
CallWork workOf(const pte::Method& method, const pte::KernelCall& call);

/// What the runtime itself does between the kernels of one execution: the call, instructions (Run), delegate
/// calls (Output), their arguments (Piece) and the bytes that these copy (Byte). Loops count as often as
/// knownTurns() knows. The kernel
/// is "(calls)".
CallWork callingWork(const pte::Method& method);
/// The share of that of one execution of one instruction.
CallWork callingWork(const pte::Method& method, const pte::Instruction& instruction);

}  // namespace carina::cpu
