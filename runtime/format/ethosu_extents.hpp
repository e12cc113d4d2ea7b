// SPDX-License-Identifier: Apache-2.0
// The bytes of a region that an operation touches: the outermost ones of a feature map's tiles and of a DMA's
// source or destination (ethosu-command-stream 4 and 8). Header-only and freestanding; shared by the stream
// checker and the driver.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carina::format {

/// Byte offsets in a region, both inclusive; may be outside it, even negative. Distances saturate below 2^60.
struct EthosURange {
  int64_t first = 0, last = 0;
  constexpr bool inside(uint64_t bytes) const {
    return first >= 0 && first <= last && static_cast<uint64_t>(last) < bytes;
  }
};

namespace extents_detail {
/// count * stride for counts up to 2^31, saturated at +-2^58, which is beyond every region. Avoids a
/// division, which small cores perform in software.
constexpr int64_t distance(int64_t count, int64_t stride) {
  constexpr int64_t kFar = int64_t{1} << 58;
  const int64_t most = int64_t{1} << (count < (int64_t{1} << 20) ? 36 : 26);
  if (count == 0) return 0;
  if (stride > most) return kFar;
  if (stride < -most) return -kFar;
  return count * stride;
}
}  // namespace extents_detail

/// Offsets of element starts relative to the first element.
struct EthosUExtent {
  int64_t low = 0, high = 0;
  constexpr void axis(int64_t count, int64_t stride) {
    const int64_t reach = extents_detail::distance(count - 1, stride);
    (reach < 0 ? low : high) += reach;
  }
  /// The range of elements of `bytes` bytes if the first one starts at `base`.
  constexpr EthosURange at(uint64_t base, int64_t bytes) const {
    const int64_t start = static_cast<int64_t>(base);
    return {start + low, start + high + bytes - 1};
  }
};

/// A feature map as laid out in memory. Strides are in bytes, tile borders in rows and columns.
struct EthosUMap {
  uint64_t base[4] = {};
  int64_t height = 1, width = 1, depth = 1;
  int64_t height0 = 1, height1 = 1, width0 = 1;
  int64_t strideY = 0, strideX = 0, strideC = 0;
  int64_t elementBytes = 1;
  bool brick = false;    // NHCWB16
  bool stacked = false;  // tiles one below the other (3x1) instead of 2x2

  /// The bytes of the map that tile `t` (0..3) holds; false if none. `range` is tight: it contains every
  /// element, and both of its ends belong to elements.
  constexpr bool tile(size_t t, EthosURange* range) const {
    int64_t rows = 0, columns = width;
    if (stacked) {
      const int64_t upper = height0 < height1 ? height0 : height1;
      rows = t == 0   ? least(height, upper)
             : t == 1 ? least(height, height1) - height0
             : t == 2 ? height - height1
                      : 0;
    } else {
      const bool right = t % 2 == 1;
      const int64_t split = right ? height1 : height0;
      columns = right ? width - width0 : least(width, width0);
      rows = t >= 2 ? height - split : least(height, split);
    }
    if (rows <= 0 || columns <= 0) return false;
    EthosUExtent extent;
    extent.axis(rows, strideY);
    extent.axis(columns, strideX);
    if (!brick) {
      extent.axis(depth, elementBytes);
    } else {
      // The last brick may be partial, so that the brick before it may reach further.
      const int64_t bricks = (depth + 15) / 16;
      const int64_t last = extents_detail::distance(bricks - 1, strideC);
      const int64_t lanes = (depth - 1) % 16 * elementBytes;
      int64_t high = last + lanes > lanes ? last + lanes : lanes;
      if (bricks > 1) {
        const int64_t whole = 15 * elementBytes, before = last - strideC + whole;
        if (whole > high) high = whole;
        if (before > high) high = before;
      }
      extent.high += high;
      if (last < 0) extent.low += last;
    }
    *range = extent.at(base[t], elementBytes);
    return true;
  }

 private:
  static constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
};

/// The bytes that one side of a DMA touches: `outer` groups, `group` apart, of `inner` runs, `step` apart, of
/// `moved` bytes. For an indexed side, `inner` is the number of possible indices.
constexpr EthosURange ethosuDmaRange(uint64_t address, uint64_t moved, int64_t inner, int64_t outer,
                                     int64_t step, int64_t group) {
  constexpr uint64_t kMost = uint64_t{1} << 58;
  EthosUExtent extent;
  extent.axis(inner, step);
  extent.axis(outer, group);
  return extent.at(address, static_cast<int64_t>(moved < kMost ? moved : kMost));
}

}  // namespace carina::format
