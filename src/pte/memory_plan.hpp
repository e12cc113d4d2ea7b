// SPDX-License-Identifier: Apache-2.0
// Memory outside the delegates: which bytes of a pool each tensor of a method occupies.
#pragma once

#include <map>
#include <span>

#include "pte/program.hpp"

namespace carina::pte {

struct MemoryPlanOptions {
  int64_t alignment = 16;
  bool planInputs = true;  // inputs get memory in the pool; otherwise the caller's memory is used
  bool planOutputs = true;
  uint32_t memoryId = 1;
};

/// Gives every activation, input and output of `method` an allocation and sets the pool's size. `aliases`
/// maps a view to the value whose bytes it shares. Constants and values in other pools are left unchanged.
/// Moves and jumps are respected: the source of a move lives as long as its target, and a value that is live
/// at one point of a backward jump's loop is live throughout. `born`, if given, has for every value the
/// number of instructions before its creation: a value created in a loop is written in every iteration before
/// it is read, so it need not survive from one iteration to the next.
Status planMethodMemory(Method& method, const std::map<int32_t, int32_t>& aliases,
                        const MemoryPlanOptions& options, std::span<const int64_t> born = {});

}  // namespace carina::pte
