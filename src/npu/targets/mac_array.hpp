// SPDX-License-Identifier: Apache-2.0
// Properties determined by the size of a variant's MAC array: shapes and memories of blocks, rates of its
// output units and buffers of its ports. One row per size; a variant with a new size adds a row.
#pragma once

#include <array>
#include <span>

#include "npu/targets/target.hpp"

namespace carina::npu {

/// SHRAM bank granules of U55/U65 (ethosu-architecture 1.1).
struct Granules {
  int32_t ifm = 0, ifm32 = 0, acc32 = 0, acc40 = 0;
};

/// Cycles per element, by producing operation and by activation (in the order of timing/output_rate.cpp).
struct OutputRates {
  std::array<double, 8> output;
  std::array<double, 3> activation;
};

/// IFM allocation units (h, w, and depth as a factor of 128 bits) for blocks with up to 128, up to 256 and
/// more bits of IFM depth.
using AllocationUnits = std::array<BlockShape, 3>;

struct MacArray {
  std::span<const BlockShape> microblocks;
  OutputRates rates;
  Granules granules;  // U55/U65
  // U85
  AllocationUnits allocation{}, wideAllocation{};  // the latter for 1x4 microblocks
  std::array<int32_t, 4> bufferBytes{};            // inputs, accumulators, outputs, chaining
  std::array<int32_t, 6> readBuffers{};            // 16-byte entries of each channel, in the order of Channel
};

const MacArray& macArrayOf(const Target& target);

}  // namespace carina::npu
