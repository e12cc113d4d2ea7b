// SPDX-License-Identifier: Apache-2.0
// What follows from the size of a variant's MAC array: shapes and memories of blocks, rates of its output
// units and buffers of its ports. A row each; a variant with an array of another size is one more.
#pragma once

#include <array>
#include <span>

#include "npu/targets/target.hpp"

namespace carina::npu {

/// SHRAM bank granules of U55/U65 (ethosu-architecture 1.1).
struct Granules {
  int32_t ifm = 0, ifm32 = 0, acc32 = 0, acc40 = 0;
};

/// Cycles of an element by what produces it, and by what follows (timing/output_rate.cpp has the order).
struct OutputRates {
  std::array<double, 8> output;
  std::array<double, 3> activation;
};

/// IFM allocation units (h, w, and depth as a factor of 128 bits) for blocks of up to 128, up to 256 and more
/// bits of IFM depth.
using AllocationUnits = std::array<BlockShape, 3>;

struct MacArray {
  std::span<const BlockShape> microblocks;
  OutputRates rates;
  Granules granules;  // U55/U65
  // U85
  AllocationUnits allocation{}, wideAllocation{};  // the latter of microblocks of 1x4
  std::array<int32_t, 4> bufferBytes{};            // inputs, accumulators, outputs, chaining
  std::array<int32_t, 6> readBuffers{};  // entries of 16 bytes of each channel, in the order of Channel
};

const MacArray& macArrayOf(const Target& target);

}  // namespace carina::npu
