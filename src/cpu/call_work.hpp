// SPDX-License-Identifier: Apache-2.0
// The work of a CPU kernel call, as counts of which its cycles are a weighted sum. The loops that are counted
// are those of runtime/kernels.
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
  Chunk,      // chunks of at most 32 elements that are computed at a time
  Run,        // runs in which every operand has one stride; lines of a normalization
  Converted,  // elements of operands that go through a buffer: types other than float32, strides other than 1
  Stored,     // elements of the result that go through a buffer
  Output,     // elements of the result, if each is a loop of its own
  Mac,        // multiply-accumulates within the input
  Tail,   // dot products: terms beyond groups of four; bytes: instructions for what is beyond blocks of 64
  Tap,    // elements of windows that are visited
  Piece,  // boxes that are moved at once; lines whose positions are visited one by one
  Byte,   // bytes that are moved unchanged
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

/// The method must have been verified. Arguments that no kernel would accept count as absent.
CallWork workOf(const pte::Method& method, const pte::KernelCall& call);

/// Work of the runtime itself between the kernels of one execution: the call, instructions (Run), delegate
/// calls (Output), their arguments (Piece) and the bytes that these copy (Byte). Loops count as often as
/// knownTripCounts() can tell. The kernel is "(calls)".
CallWork callingWork(const pte::Method& method);
/// The share of one execution of one instruction in that.
CallWork callingWork(const pte::Method& method, const pte::Instruction& instruction);

}  // namespace carina::cpu
