// SPDX-License-Identifier: Apache-2.0
// The checker on a stream that is not run: every command in the order in which it stands, no data needed.
// Finds missing waits, too large BLOCKDEPs, accesses outside the regions, misalignment, illegal blocks,
// registers used before they are set and reads of memory that nothing has written. Streams with branches
// (U85) are read straight through: what holds on one path only may be reported or missed; a run with
// ModelOptions::check follows the path.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "npu/model/model.hpp"

namespace carina::npu {

/// What is known of the memory that a stream will run on.
struct StreamMemory {
  struct Region {
    uint64_t bytes = 0;
    bool writable = true;  // false: constants, which are there before the run
  };
  std::array<std::optional<Region>, 8> regions;  // none: unknown, anything goes
  std::vector<InitializedRange> initialized;     // inputs of the program
  /// Without knowledge of the inputs, reads of memory that nothing has written are not reported.
  bool inputsKnown = true;
};

/// Findings in stream order (at most a few hundred).
std::vector<Finding> checkStream(std::span<const uint32_t> words, const Target& target,
                                 const StreamMemory& memory);

}  // namespace carina::npu
