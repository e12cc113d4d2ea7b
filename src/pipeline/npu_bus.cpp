// SPDX-License-Identifier: Apache-2.0
#include "pipeline/npu_bus.hpp"

#include <cstring>

namespace carina::pipeline {

int64_t elementAt(const std::byte* at, npu::ElementType type) {
  const auto load = [&](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return static_cast<int64_t>(value);
  };
  switch (type) {
    case npu::ElementType::Int8:
      return load(int8_t{});
    case npu::ElementType::UInt8:
      return load(uint8_t{});
    case npu::ElementType::Int16:
      return load(int16_t{});
    case npu::ElementType::UInt16:
      return load(uint16_t{});
    case npu::ElementType::Int32:
      return load(int32_t{});
    case npu::ElementType::UInt32:
      return load(uint32_t{});
    case npu::ElementType::Int64:
      return load(int64_t{});
  }
  return 0;
}

}  // namespace carina::pipeline
