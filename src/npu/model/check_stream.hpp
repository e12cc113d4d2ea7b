// SPDX-License-Identifier: Apache-2.0
// Checks a stream without running it: every command in stream order, without data. Finds missing waits,
// BLOCKDEPs that are too large, accesses outside the regions, misalignment, illegal blocks, registers used
// before they are set and reads of memory that nothing has written. Streams with branches (U85) are read
// linearly: findings that depend on the path may be wrong or missing; a run with ModelOptions::check follows
// the path.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "npu/model/model.hpp"

namespace carina::npu {

/// What is known about the memory on which a stream will run.
struct StreamMemory {
  struct Region {
    uint64_t bytes = 0;
    bool writable = true;  // false: constants, present before the run
  };
  std::array<std::optional<Region>, 8> regions;  // none: unknown, any access is allowed
  std::vector<InitializedRange> initialized;     // inputs of the program
  /// If false, reads of memory that nothing has written are not reported.
  bool inputsKnown = true;
};

/// Findings in stream order (at most a few hundred).
std::vector<Finding> checkStream(std::span<const uint32_t> words, const Target& target,
                                 const StreamMemory& memory);

}  // namespace carina::npu
