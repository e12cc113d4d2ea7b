// SPDX-License-Identifier: Apache-2.0
// A search for the order in which to place buffers: each one goes to the lowest address, or the highest one
// under the ceiling, that is free for its whole lifetime.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "packing/packing.hpp"

namespace carina {

/// Pairs of ranges that are live at the same time.
using Collisions = std::vector<std::pair<uint32_t, uint32_t>>;

/// Nothing if there are more than `most`.
std::optional<Collisions> collisionsOf(std::span<const LiveRange> ranges, size_t most);

/// Buffers to place.
struct PlacementProblem {
  std::span<const LiveRange> ranges;
  std::span<const std::pair<uint32_t, uint32_t>> collisions;
  int64_t alignment = 16;

  /// Steps of one placement.
  size_t steps() const { return collisions.size() + ranges.size(); }
};

/// The densest placement found in several orders, or that of `start`, improved by swapping positions in the
/// order until no more than `enough` bytes are used, `attempts` swaps bring no improvement, or `placements`
/// orders were tried; these are subtracted.
Packing searchPlacement(const PlacementProblem& problem, int64_t enough, int attempts, size_t& placements,
                        const Packing* start = nullptr);

}  // namespace carina
