// SPDX-License-Identifier: Apache-2.0
// Feature maps in memory: tiles, layouts and strides resolved to host pointers once per operation, then read
// and written row by row without further checks (ethosu-command-stream 4).
#pragma once

#include <array>
#include <cstdint>

#include "npu/isa/operation.hpp"
#include "npu/model/operation_fault.hpp"

namespace carina::npu::model {

class BoundMap {
 public:
  /// Checks and resolves all memory of elements [0,height) x [0,width) x [0,depth) of `map`. `name` is used
  /// in messages ("IFM").
  Outcome bind(const FeatureMap& map, int64_t height, int64_t width, int64_t depth, AddressMap& memory,
               Access access, Channel channel, const char* name);

  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  int64_t depth() const { return depth_; }
  ElementType type() const { return type_; }

  /// to[(x - x0) * depth + c] = element (y, x, c) - zeroPoint for x in [x0, x1). T: int16_t (the difference
  /// must fit) or int64_t.
  template <typename T>
  void readRow(int64_t y, int64_t x0, int64_t x1, int64_t zeroPoint, T* to) const;

  /// Stores dense elements [x1-x0][depth] of the map's type.
  void writeRow(int64_t y, int64_t x0, int64_t x1, const std::byte* from) const;

  /// Address of one element, for random access.
  std::byte* element(int64_t y, int64_t x, int64_t c) const {
    int64_t yy = y, xx = x;
    const size_t t = tileOf(yy, xx);
    const int64_t inPixel = xx * strideX_ + (brick_ ? c / 16 * strideC_ + c % 16 * bytes_ : c * bytes_);
    return origin_[t] + (zero_[t] + yy * strideY_ + inPixel);
  }

 private:
  /// Returns the tile of (y, x) and makes them relative to it.
  size_t tileOf(int64_t& y, int64_t& x) const {
    if (stacked_) {
      if (y >= height1_) {
        y -= height1_;
        return 2;
      }
      if (y >= height0_) {
        y -= height0_;
        return 1;
      }
      return 0;
    }
    size_t t = 0;
    int64_t rows = height0_;
    if (x >= width0_) {
      x -= width0_;
      t = 1;
      rows = height1_;
    }
    if (y >= rows) {
      y -= rows;
      t += 2;
    }
    return t;
  }

  std::array<std::byte*, 4> origin_{};  // first accessible byte of each tile
  std::array<int64_t, 4> zero_{};       // bytes from there to the tile's element (0, 0, 0)
  int64_t height_ = 0, width_ = 0, depth_ = 0;
  int64_t height0_ = 0, height1_ = 0, width0_ = 0;
  int64_t strideX_ = 0, strideY_ = 0, strideC_ = 0, bytes_ = 1;
  ElementType type_ = ElementType::Int8;
  bool brick_ = false, stacked_ = false;
};

}  // namespace carina::npu::model
