// SPDX-License-Identifier: Apache-2.0
// How many cycles instructions take. What runs, runs the same way with every pipeline; only the count of
// cycles differs. The rules are a table in pipeline.cpp, its sources are named there.
#pragma once

#include <array>
#include <cstdint>

#include "cpu_m/encoding.hpp"

namespace carina::cpu_m {

/// Whose cycles are counted. `None`: an instruction is a cycle.
enum class Pipeline : uint8_t { None, M33, M55, M85 };
const char* pipelineName(Pipeline pipeline);

/// What taken branches and exceptions cost besides the cycle in which they are issued.
struct BranchCosts {
  uint8_t taken = 0;         // a branch that nothing has foreseen
  uint8_t mispredicted = 0;  // a conditional branch that went the other way; 0: nothing is predicted
  uint8_t loop = 0;          // back to the start of a low-overhead loop
  uint8_t entry = 0;         // from the last instruction to the first one of a handler
  uint8_t exit = 0;          // from the return to the first instruction of the program interrupted
  uint8_t chain = 0;         // from the return to the first instruction of the next handler, without a frame
  uint8_t words = 0;         // of a frame beyond the basic one that are moved in a cycle; 0: at once
};
const BranchCosts& branchCosts(Pipeline pipeline);

/// Cycles for words of floating-point registers and of the Secure frame, which `entry` and `exit` leave out.
uint32_t transferCycles(Pipeline pipeline, uint32_t words);

/// How an instruction that ends a block goes on.
enum class BranchKind : uint8_t {
  None,         // it stops the core, or is no branch
  Fixed,        // to an address in the instruction
  Computed,     // to an address from a register or memory
  Conditional,  // B<c>, CBZ, CBNZ, WLS
  Loop,         // LE, LETP
};
/// Of an instruction that ends a block; null: one that is not defined.
BranchKind branchKind(const CompiledEncoding* encoding);

/// Issues the instructions of a basic block one after the other, as an in-order pipeline does: an instruction
/// starts when its operands are there and the unit that executes it is free, two of them in one cycle where
/// the core can pair them.
class IssueModel {
 public:
  explicit IssueModel(Pipeline pipeline) : pipeline_(pipeline) {}

  /// Adds the next instruction; returns the cycle in which it starts. `encoding` is null for one that is not
  /// defined.
  uint32_t add(const CompiledEncoding* encoding, const Op& op);
  /// Passes cycles in which nothing starts.
  void pass(uint32_t cycles) { next_ += cycles; }
  /// Cycles until the next block can start; when the block is repeated, until its next turn can.
  uint32_t cycles() const;

 private:
  static constexpr uint32_t kUnits = 12;
  // R0 to R15, the flags, Q0 to Q7.
  static constexpr uint32_t kRegisters = 25;

  bool pairs(const CompiledEncoding& encoding, const Op& op) const;

  Pipeline pipeline_;
  uint32_t next_ = 0;   // the first cycle that has room
  uint32_t last_ = 0;   // in which the latest instruction started
  bool alone_ = true;   // nothing may join the latest instruction
  bool leads_ = false;  // the latest instruction may be the first of a pair
  bool easy_ = false;   // it is one of those that pair with anything
  std::array<uint32_t, kUnits> firstUse_{}, freeAt_{};
  std::array<bool, kUnits> used_{};
  std::array<uint32_t, kRegisters> ready_{};
};

}  // namespace carina::cpu_m
