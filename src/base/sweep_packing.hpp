// SPDX-License-Identifier: Apache-2.0
// Packs blocks with lifetimes into one memory by a sweep over time: n log n steps, for problems that are too
// large to search for a denser packing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace carina {

/// A block that is live during the steps [first, last].
struct TimedBlock {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
};

struct SweepPacking {
  std::vector<int64_t> addresses;  // multiples of the alignment; 0 for blocks of no bytes
  int64_t bytes = 0;               // end of the highest block, a multiple of the alignment
};

/// In order of time, places each block in the smallest gap that it fits, else at the top.
SweepPacking sweepPacking(std::span<const TimedBlock> blocks, int64_t alignment);

}  // namespace carina
