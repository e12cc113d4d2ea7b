// SPDX-License-Identifier: Apache-2.0
#include "pipeline/npu_bus.hpp"

#include <algorithm>
#include <cstring>

#include "npu/isa/layout.hpp"

namespace carina::pipeline {
namespace {

/// Loads consecutive elements, sign- or zero-extended.
template <typename T>
void load(const std::byte* from, int64_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i, from += sizeof(T)) {
    T value;
    std::memcpy(&value, from, sizeof(value));
    to[i] = static_cast<int64_t>(value);
  }
}

void loadElements(const std::byte* from, npu::ElementType type, int64_t* to, int64_t count) {
  switch (type) {
    case npu::ElementType::Int8:
      return load<int8_t>(from, to, count);
    case npu::ElementType::UInt8:
      return load<uint8_t>(from, to, count);
    case npu::ElementType::Int16:
      return load<int16_t>(from, to, count);
    case npu::ElementType::UInt16:
      return load<uint16_t>(from, to, count);
    case npu::ElementType::Int32:
      return load<int32_t>(from, to, count);
    case npu::ElementType::UInt32:
      return load<uint32_t>(from, to, count);
    case npu::ElementType::Int64:
      return load<int64_t>(from, to, count);
  }
}

}  // namespace

MapElements readMap(const npu::FeatureMap& map, int64_t height, int64_t width, int64_t depth,
                    std::span<const std::byte> region) {
  const int64_t step = map.layout == npu::Layout::NHWC ? depth : npu::kBrickDepth;  // consecutive channels
  MapElements out;
  out.elements.resize(static_cast<size_t>(height * width * depth));
  out.first = UINT64_MAX;
  int64_t* to = out.elements.data();
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < depth; c += step) {
        const int64_t count = std::min(step, depth - c);
        const auto bytes = static_cast<uint64_t>(count * npu::elementBytes(map.type));
        const uint64_t address = npu::elementAddress(map, static_cast<int32_t>(y), static_cast<int32_t>(x),
                                                     static_cast<int32_t>(c));
        out.first = std::min(out.first, address);
        out.last = std::max(out.last, address + bytes);
        if (address > region.size() || bytes > region.size() - address) {
          out.elements.clear();
          return out;
        }
        loadElements(region.data() + address, map.type, to, count);
        to += count;
      }
    }
  }
  return out;
}

}  // namespace carina::pipeline
