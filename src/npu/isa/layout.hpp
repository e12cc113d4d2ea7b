// SPDX-License-Identifier: Apache-2.0
// Layout of feature maps in memory: sizes, strides and addresses of NHWC and NHCWB16, tiles, rolling buffers.
// Reference: ethosu-command-stream 4.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/shape.hpp"
#include "npu/isa/operation.hpp"

namespace carina::npu {

constexpr int32_t kBrickDepth = 16;      // channels of one brick of NHCWB16
constexpr int64_t kBrickAlignment = 16;  // bytes: base and strides of NHCWB16

struct Strides {
  int64_t x = 0, y = 0, c = 0;  // bytes, as in the stride registers
};

/// Strides of a dense feature map.
constexpr Strides denseStrides(int32_t width, int32_t depth, ElementType type, Layout layout) {
  const int64_t element = elementBytes(type);
  if (layout == Layout::NHWC) return {depth * element, width * depth * element, element};
  return {kBrickDepth * element, width * roundUp(depth, kBrickDepth) * element,
          int64_t{kBrickDepth} * width * element};
}

/// Bytes of a dense map, channel padding included.
constexpr int64_t denseBytes(int32_t height, int32_t width, int32_t depth, ElementType type, Layout layout) {
  const int64_t channels = layout == Layout::NHCWB16 ? roundUp(depth, kBrickDepth) : depth;
  return int64_t{height} * width * channels * elementBytes(type);
}

/// A dense map in one tile at `base`.
inline FeatureMap denseMap(int32_t height, int32_t width, int32_t depth, ElementType type, Layout layout,
                           uint8_t region, uint64_t base) {
  FeatureMap fm;
  fm.height = height;
  fm.width = width;
  fm.depth = depth;
  fm.type = type;
  fm.layout = layout;
  fm.region = region;
  fm.base = {base, 0, 0, 0};
  fm.height0 = fm.height1 = height;
  fm.width0 = width;
  const Strides strides = denseStrides(width, depth, type, layout);
  fm.strideX = strides.x;
  fm.strideY = strides.y;
  fm.strideC = strides.c;
  return fm;
}

/// Splits a dense map's rows over a rolling buffer of `rows` rows at `buffer`: the map starts at row `first`
/// of the whole tensor. Tiles 0 and 2 hold the rows before and after the wrap.
inline void placeInRollingBuffer(FeatureMap& fm, uint64_t buffer, int32_t rows, int32_t first) {
  const int32_t start = first % rows;
  fm.height0 = fm.height1 = std::min(fm.height, rows - start);
  fm.base = {buffer + static_cast<uint64_t>(start * fm.strideY), 0, fm.height > fm.height0 ? buffer : 0, 0};
}

/// Offset of an element within the map's region. The coordinates are those of the map (y < height and so on).
constexpr uint64_t elementAddress(const FeatureMap& fm, int32_t y, int32_t x, int32_t c) {
  size_t tile = 0;
  if (fm.storage == Storage::Tiles3x1) {
    // Three tiles on top of each other; height1 counts from row 0.
    if (y >= fm.height1) {
      y -= fm.height1;
      tile = 2;
    } else if (y >= fm.height0) {
      y -= fm.height0;
      tile = 1;
    }
  } else {
    if (x >= fm.width0) {
      x -= fm.width0;
      tile = 1;
    }
    const int32_t rows = tile == 0 ? fm.height0 : fm.height1;
    if (y >= rows) {
      y -= rows;
      tile += 2;
    }
  }
  const int64_t element = elementBytes(fm.type);
  const int64_t channel =
      fm.layout == Layout::NHWC ? c * element : c / kBrickDepth * fm.strideC + c % kBrickDepth * element;
  const int64_t offset = y * fm.strideY + x * fm.strideX + channel;
  return fm.base[tile] + static_cast<uint64_t>(offset);
}

}  // namespace carina::npu
