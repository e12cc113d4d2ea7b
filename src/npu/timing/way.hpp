// SPDX-License-Identifier: Apache-2.0
// Cycles of a command stream with branches: of its longest way.
#pragma once

#include <span>

#include "npu/isa/stream.hpp"
#include "npu/timing/timing.hpp"

namespace carina::npu {

/// A loop of a stream whose turns are known: operations in [begin, end), byte offsets.
struct CountedLoop {
  uint32_t begin = 0, end = 0;
  int64_t turns = 1;
};

/// Cycles of the way through the operations that takes most of them. Of a choice, that is the longer side; a
/// loop has the turns that are said of it, one where nothing is said (also where there are none: the estimate
/// is never below one turn). Without branches, the time line's total.
Cycles longestWay(std::span<const PlacedOperation> operations, const Machine& machine,
                  const timing::Rules& rules = timing::kCalibrated, std::span<const CountedLoop> loops = {});

}  // namespace carina::npu
