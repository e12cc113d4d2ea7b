// SPDX-License-Identifier: Apache-2.0
// Where probes of the NPU model place a program on the bus, and how they read feature maps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "npu/isa/operation.hpp"

namespace carina::pipeline {

/// Bus addresses of command stream and regions: far apart, so that overruns hit nothing.
inline constexpr uint64_t kStreamAddress = 0x01000000;
inline constexpr uint64_t kRegionAddress[3] = {0x10000000, 0x40000000, 0x80000000};

/// The elements of a map.
struct MapElements {
  std::vector<int64_t> elements;  // in row-major order of height, width, depth; empty if some lie outside
  uint64_t first = 0, last = 0;   // the bytes they lie in: [first, last)
};

/// Reads the first `height` x `width` x `depth` elements of a map that is stored in tiles in `region`.
MapElements readMap(const npu::FeatureMap& map, int64_t height, int64_t width, int64_t depth,
                    std::span<const std::byte> region);

}  // namespace carina::pipeline
