// SPDX-License-Identifier: Apache-2.0
// Memory outside the delegates: which bytes of a pool each tensor of a method occupies.
#pragma once

#include <map>
#include <span>

#include "pte/program.hpp"

namespace carina::pte {

/// A block that is live from instruction `first` to `last`, inclusive.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
};

struct Plan {
  std::vector<int64_t> offsets;  // one per lifetime, multiples of the alignment
  int64_t bytes = 0;             // of the pool
};

/// Greedy by size: the largest block first, each at the lowest offset that no block live at the same time
/// occupies; more than 8,192 blocks are placed by a sweep over time. Empty blocks get offset 0. alignment:
/// power of two.
Plan planBlocks(std::span<const Lifetime> lifetimes, int64_t alignment);

/// Lower bound on the bytes of any plan: the largest sum of blocks live at once.
int64_t planLowerBound(std::span<const Lifetime> lifetimes, int64_t alignment);

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
