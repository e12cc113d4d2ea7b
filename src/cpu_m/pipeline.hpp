// SPDX-License-Identifier: Apache-2.0
// Cycle counts of instructions. The pipeline affects only these counts, not what is executed. The rules are a
// table in pipeline.cpp, which also names its sources.
#pragma once

#include <array>
#include <cstdint>

#include "cpu_m/encoding.hpp"

namespace carina::cpu_m {

/// The core whose cycles are counted. `None`: one cycle per instruction.
enum class Pipeline : uint8_t { None, M33, M55, M85 };
const char* pipelineName(Pipeline pipeline);

/// Cycles that taken branches and exceptions cost beyond the one in which they are issued.
struct BranchCosts {
  uint8_t taken = 0;         // a branch without prediction
  uint8_t mispredicted = 0;  // a mispredicted conditional branch; 0: no branch prediction
  uint8_t loop = 0;          // back to the start of a low-overhead loop
  uint8_t entry = 0;         // from the last instruction to the first one of a handler
  uint8_t exit = 0;          // from the return to the first instruction of the interrupted code
  uint8_t chain = 0;         // tail-chaining: from the return to the first instruction of the next handler
  uint8_t words = 0;         // moved per cycle for a frame beyond the basic one; 0: no extra cycles
};
const BranchCosts& branchCosts(Pipeline pipeline);

/// Cycles for words of floating-point registers and of the Secure frame, which `entry` and `exit` do not
/// include.
uint32_t transferCycles(Pipeline pipeline, uint32_t words);

/// How execution continues after an instruction that ends a block.
enum class BranchKind : uint8_t {
  None,         // stops the core, or is not a branch
  Fixed,        // to an address in the instruction
  Computed,     // to an address from a register or memory
  Conditional,  // B<c>, CBZ, CBNZ, WLS
  Loop,         // LE, LETP
};
/// The kind of an instruction that ends a block; null: an undefined one.
BranchKind branchKind(const CompiledEncoding* encoding);

/// Issues the instructions of a basic block in order: an instruction starts when its operands are ready and
/// its execution unit is free; two start in one cycle if the core can pair them.
class IssueModel {
 public:
  explicit IssueModel(Pipeline pipeline) : pipeline_(pipeline) {}

  /// Adds the next instruction; returns the cycle in which it starts. `encoding` is null for an undefined
  /// one.
  uint32_t add(const CompiledEncoding* encoding, const Op& op);
  /// Adds cycles in which nothing starts.
  void pass(uint32_t cycles) { next_ += cycles; }
  /// Cycles until the next block can start; for a repeated block, until its next iteration can.
  uint32_t cycles() const;

 private:
  static constexpr uint32_t kUnits = 12;
  // R0 to R15, the flags, Q0 to Q7.
  static constexpr uint32_t kRegisters = 25;

  bool pairs(const CompiledEncoding& encoding, const Op& op) const;

  Pipeline pipeline_;
  uint32_t next_ = 0;   // the first cycle with a free issue slot
  uint32_t last_ = 0;   // the cycle in which the latest instruction started
  bool alone_ = true;   // nothing may join the latest instruction
  bool leads_ = false;  // the latest instruction may be the first of a pair
  bool easy_ = false;   // the latest instruction pairs with any other
  std::array<uint32_t, kUnits> firstUse_{}, freeAt_{};
  std::array<bool, kUnits> used_{};
  std::array<uint32_t, kRegisters> ready_{};
};

}  // namespace carina::cpu_m
