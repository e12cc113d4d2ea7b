// SPDX-License-Identifier: Apache-2.0
// Packs buffers with lifetimes into one memory by a sweep over time: n log n steps, for problems that are too
// large to search for a denser packing.
#pragma once

#include <cstdint>
#include <span>

#include "packing/packing.hpp"

namespace carina {

/// In order of time, places each buffer in the smallest gap that it fits, else at the top. Buffers of no
/// bytes get address 0.
Packing sweepPacking(std::span<const LiveRange> ranges, int64_t alignment);

}  // namespace carina
