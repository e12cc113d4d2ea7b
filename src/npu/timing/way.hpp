// SPDX-License-Identifier: Apache-2.0
// Cycles of a command stream with branches: those of its longest path.
#pragma once

#include <span>

#include "npu/isa/stream.hpp"
#include "npu/timing/timing.hpp"

namespace carina::npu {

/// A loop of a stream with a known number of iterations: operations in [begin, end), byte offsets.
struct CountedLoop {
  uint32_t begin = 0, end = 0;
  int64_t turns = 1;
};

/// Cycles of the longest path through the operations. Of a choice, it takes the longer side; a loop has the
/// iterations given in `loops`, or one if it is not listed (and at least one: the estimate is never below one
/// iteration). Without branches, the time line's total.
Cycles longestPath(std::span<const PlacedOperation> operations, const Machine& machine,
                   const timing::Rules& rules = timing::kCalibrated, std::span<const CountedLoop> loops = {});

}  // namespace carina::npu
