// SPDX-License-Identifier: Apache-2.0
// Memory outside the delegates: which bytes of a pool each tensor of a method occupies.
#pragma once

#include <map>
#include <span>

#include "pte/program.hpp"

namespace carina::pte {

/// A block that is live from instruction `first` to `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
};

struct Plan {
  std::vector<int64_t> offsets;  // one per lifetime, multiples of the alignment
  int64_t bytes = 0;             // of the pool
};

/// Greedy by size: the largest block first, each at the lowest offset where no block live at the same time
/// lies; more than 8,192 blocks by a sweep over time. Blocks of no bytes get offset 0. alignment: power of
/// two.
Plan planBlocks(std::span<const Lifetime> lifetimes, int64_t alignment);

/// Least number of bytes any plan needs: the largest sum of blocks live at once.
int64_t planLowerBound(std::span<const Lifetime> lifetimes, int64_t alignment);

struct MemoryPlanOptions {
  int64_t alignment = 16;
  bool planInputs = true;  // inputs get memory in the pool; otherwise the caller's memory is used
  bool planOutputs = true;
  uint32_t memoryId = 1;
};

/// Gives every activation, input and output of `method` an allocation and sets the pool's size. `aliases`
/// maps a view to the value whose bytes it shows. Constants and what lies in another pool are left alone.
/// Moves and jumps are respected: the source of a move lives as long as its target, and what is live at one
/// point of a backward jump's loop is live throughout. `born`, when given, has for every value how many
/// instructions stood in front of its making: one that is made in a loop is written in every turn before it
/// is read, so that nothing of it is needed from one turn to the next.
Status planMethodMemory(Method& method, const std::map<int32_t, int32_t>& aliases,
                        const MemoryPlanOptions& options, std::span<const int64_t> born = {});

}  // namespace carina::pte
