// SPDX-License-Identifier: Apache-2.0
// Packs buffers with lifetimes by best fit: the lowest part of the skyline (the height reached so far at each
// time step) gets the most suitable buffer that lives within it. In contrast to placement in a fixed order,
// each choice depends on the gap that is to be filled.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "packing/packing.hpp"

namespace carina {

/// The densest packing under several preferences (the longest, earliest, latest or largest buffer first) and
/// random variations of them, until one needs no more than `enough` bytes; nothing if none needs less than
/// `below`. At most `variations` are tried, from which these are subtracted. Deterministic, and mostly n log
/// n per packing.
std::optional<Packing> packOnSkyline(std::span<const LiveRange> ranges, int64_t enough, int64_t below,
                                     int64_t alignment, size_t& variations);

}  // namespace carina
