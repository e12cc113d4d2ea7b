// SPDX-License-Identifier: Apache-2.0
// Feature map binding, gathering and scattering (feature_map.hpp).
#include "npu/model/feature_map.hpp"

#include <algorithm>
#include <cstring>

namespace carina::npu::model {
namespace {

struct Extent {
  int64_t low = 0, high = 0;  // byte offsets of the first and last element start
  void axis(int64_t count, int64_t stride) {
    const int64_t reach = (count - 1) * stride;
    (reach < 0 ? low : high) += reach;
  }
};

/// Byte offsets that `rows` x `columns` x `depth` elements of one tile span.
Extent extentOf(const FeatureMap& map, int64_t rows, int64_t columns, int64_t depth, int64_t bytes) {
  Extent extent;
  extent.axis(rows, map.strideY);
  extent.axis(columns, map.strideX);
  if (map.layout == Layout::NHWC) {
    extent.axis(depth, bytes);
    return extent;
  }
  const int64_t bricks = (depth + 15) / 16;
  const int64_t last = (bricks - 1) * map.strideC;
  const int64_t lanes = (depth - 1) % 16;  // of the last brick
  // The last brick may be partial: its end and that of the brick before it both count.
  int64_t high = std::max<int64_t>(last + lanes * bytes, lanes * bytes);
  if (bricks > 1) high = std::max({high, int64_t{15} * bytes, (bricks - 2) * map.strideC + 15 * bytes});
  extent.high += high;
  extent.low += std::min<int64_t>(last, 0);
  return extent;
}

template <typename Source, typename T>
inline void convert(const std::byte* from, int64_t count, int64_t zeroPoint, T* to) {
  if constexpr (sizeof(T) == 2) {
    const auto zp = static_cast<int32_t>(zeroPoint);
    for (int64_t i = 0; i < count; ++i) {
      Source v;
      std::memcpy(&v, from + i * static_cast<int64_t>(sizeof(Source)), sizeof v);
      to[i] = static_cast<T>(static_cast<int32_t>(v) - zp);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      Source v;
      std::memcpy(&v, from + i * static_cast<int64_t>(sizeof(Source)), sizeof v);
      // Wraps for 64-bit elements only, whose zero point is 0 in valid streams.
      to[i] =
          static_cast<T>(static_cast<uint64_t>(static_cast<int64_t>(v)) - static_cast<uint64_t>(zeroPoint));
    }
  }
}

template <typename Source, typename T>
void readPixels(const std::byte* from, int64_t columns, int64_t depth, bool brick, int64_t strideX,
                int64_t strideC, int64_t zeroPoint, T* to) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Source));
  if (!brick) {
    if (strideX == depth * kBytes) {
      convert<Source>(from, columns * depth, zeroPoint, to);
      return;
    }
    for (int64_t x = 0; x < columns; ++x)
      convert<Source>(from + x * strideX, depth, zeroPoint, to + x * depth);
    return;
  }
  for (int64_t c = 0; c < depth; c += 16) {
    const std::byte* in = from + c / 16 * strideC;
    T* out = to + c;
    if (depth - c >= 16) {
      for (int64_t x = 0; x < columns; ++x) convert<Source>(in + x * strideX, 16, zeroPoint, out + x * depth);
    } else {
      for (int64_t x = 0; x < columns; ++x) {
        convert<Source>(in + x * strideX, depth - c, zeroPoint, out + x * depth);
      }
    }
  }
}

/// One for each ElementType, in enum order.
template <typename T>
constexpr std::array kReaders{readPixels<int8_t, T>,   readPixels<uint8_t, T>, readPixels<int16_t, T>,
                              readPixels<uint16_t, T>, readPixels<int32_t, T>, readPixels<uint32_t, T>,
                              readPixels<int64_t, T>};

}  // namespace

Outcome BoundMap::bind(const FeatureMap& map, int64_t height, int64_t width, int64_t depth,
                       AddressMap& memory, Access access, Channel channel, const char* name) {
  height_ = height;
  width_ = width;
  depth_ = depth;
  type_ = map.type;
  bytes_ = elementBytes(map.type);
  brick_ = map.layout == Layout::NHCWB16;
  stacked_ = map.storage == Storage::Tiles3x1;
  height0_ = map.height0;
  height1_ = map.height1;
  width0_ = map.width0;
  strideX_ = map.strideX;
  strideY_ = map.strideY;
  strideC_ = map.strideC;
  if (height < 1 || width < 1 || depth < 1) {
    return makeFault(FaultKind::Parse, "{} of {}x{}x{} elements", name, height, width, depth);
  }
  // Rows and columns of each tile that are accessed.
  std::array<int64_t, 4> rows{}, columns{};
  if (stacked_) {
    rows[0] = std::min(height, std::min(height0_, height1_));
    rows[1] = std::max<int64_t>(std::min(height, height1_) - height0_, 0);
    rows[2] = std::max<int64_t>(height - height1_, 0);
    columns[0] = columns[1] = columns[2] = width;
  } else {
    columns[0] = columns[2] = std::min(width, width0_);
    columns[1] = columns[3] = std::max<int64_t>(width - width0_, 0);
    rows[0] = std::min(height, height0_);
    rows[1] = std::min(height, height1_);
    rows[2] = std::max<int64_t>(height - height0_, 0);
    rows[3] = std::max<int64_t>(height - height1_, 0);
  }
  for (size_t t = 0; t < 4; ++t) {
    if (rows[t] <= 0 || columns[t] <= 0) continue;
    const Extent extent = extentOf(map, rows[t], columns[t], depth, bytes_);
    const auto length = static_cast<uint64_t>(extent.high - extent.low + bytes_);
    const uint64_t first = map.base[t] + static_cast<uint64_t>(extent.low);
    origin_[t] = memory.resolve(map.region, first, length, access);
    zero_[t] = -extent.low;
    if (origin_[t] == nullptr) {
      OperationFault result =
          makeFault(FaultKind::Bus, "{} tile {}: {} bytes at offset 0x{:x} are outside region {}{}", name, t,
                    length, first, map.region, access == Access::Write ? " or not writable" : "");
      result.channel = static_cast<uint8_t>(channel);
      return result;
    }
  }
  return std::nullopt;
}

template <typename T>
void BoundMap::readRow(int64_t y, int64_t x0, int64_t x1, int64_t zeroPoint, T* to) const {
  while (x0 < x1) {
    int64_t yy = y, xx = x0;
    const size_t t = tileOf(yy, xx);
    const int64_t end = !stacked_ && x0 < width0_ ? std::min(x1, width0_) : x1;
    const int64_t columns = end - x0;
    const std::byte* from = origin_[t] + (zero_[t] + yy * strideY_ + xx * strideX_);
    kReaders<T>[static_cast<size_t>(type_)](from, columns, depth_, brick_, strideX_, strideC_, zeroPoint, to);
    to += columns * depth_;
    x0 = end;
  }
}

template void BoundMap::readRow<int16_t>(int64_t, int64_t, int64_t, int64_t, int16_t*) const;
template void BoundMap::readRow<int64_t>(int64_t, int64_t, int64_t, int64_t, int64_t*) const;

void BoundMap::writeRow(int64_t y, int64_t x0, int64_t x1, const std::byte* from) const {
  const int64_t pixel = depth_ * bytes_;
  while (x0 < x1) {
    int64_t yy = y, xx = x0;
    const size_t t = tileOf(yy, xx);
    const int64_t end = !stacked_ && x0 < width0_ ? std::min(x1, width0_) : x1;
    const int64_t columns = end - x0;
    std::byte* to = origin_[t] + (zero_[t] + yy * strideY_ + xx * strideX_);
    if (!brick_) {
      if (strideX_ == pixel) {
        std::memcpy(to, from, static_cast<size_t>(columns * pixel));
      } else {
        for (int64_t x = 0; x < columns; ++x)
          std::memcpy(to + x * strideX_, from + x * pixel, static_cast<size_t>(pixel));
      }
    } else {
      for (int64_t c = 0; c < depth_; c += 16) {
        std::byte* out = to + c / 16 * strideC_;
        const std::byte* in = from + c * bytes_;
        if (depth_ - c >= 16 && bytes_ == 1) {
          for (int64_t x = 0; x < columns; ++x) std::memcpy(out + x * strideX_, in + x * pixel, 16);
        } else {
          const auto count = static_cast<size_t>(std::min<int64_t>(depth_ - c, 16) * bytes_);
          for (int64_t x = 0; x < columns; ++x) std::memcpy(out + x * strideX_, in + x * pixel, count);
        }
      }
    }
    from += columns * pixel;
    x0 = end;
  }
}

}  // namespace carina::npu::model
