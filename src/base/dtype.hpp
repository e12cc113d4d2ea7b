// SPDX-License-Identifier: Apache-2.0
// Element types of all dialects.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace carina {

/// How one element lies in a host Tensor: Bool is one byte (0 or 1); Int4 one sign-extended byte per element;
/// Int48 one sign-extended int64; Shape (TOSA shape values) int64. All others have their natural size,
/// little-endian.
enum class DType : uint8_t {
  Bool,
  Int4,
  Int8,
  UInt8,
  Int16,
  UInt16,
  Int32,
  UInt32,
  Int48,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Shape,
};

/// Short name as printers write it: "bool", "i8", "u8", "i48", "f32", "bf16", "shape", ...
std::string_view dtypeName(DType dtype);
std::optional<DType> dtypeFromName(std::string_view name);

/// Bytes of one element in a host Tensor.
constexpr int64_t dtypeSize(DType dtype) {
  switch (dtype) {
    case DType::Bool:
    case DType::Int4:
    case DType::Int8:
    case DType::UInt8:
      return 1;
    case DType::Int16:
    case DType::UInt16:
    case DType::Float16:
    case DType::BFloat16:
      return 2;
    case DType::Int32:
    case DType::UInt32:
    case DType::Float32:
      return 4;
    case DType::Int48:
    case DType::Int64:
    case DType::Float64:
    case DType::Shape:
      return 8;
  }
  return 0;
}

constexpr bool isFloat(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 || dtype == DType::Float32 ||
         dtype == DType::Float64;
}
constexpr bool isUnsigned(DType dtype) {
  return dtype == DType::UInt8 || dtype == DType::UInt16 || dtype == DType::UInt32;
}
/// Integers of any width; Bool and Shape are neither integer nor float.
constexpr bool isInteger(DType dtype) {
  return !isFloat(dtype) && dtype != DType::Bool && dtype != DType::Shape;
}

/// Smallest and largest value of an integer type (Int4: -8..7, Int48: 48-bit range; UInt32 fits int64).
constexpr int64_t integerMin(DType dtype) {
  switch (dtype) {
    case DType::Int4:
      return -8;
    case DType::Int8:
      return -128;
    case DType::Int16:
      return -32768;
    case DType::Int32:
      return INT32_MIN;
    case DType::Int48:
      return -(int64_t{1} << 47);
    case DType::Int64:
    case DType::Shape:
      return INT64_MIN;
    default:
      return 0;
  }
}
constexpr int64_t integerMax(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return 1;
    case DType::Int4:
      return 7;
    case DType::Int8:
      return 127;
    case DType::UInt8:
      return 255;
    case DType::Int16:
      return 32767;
    case DType::UInt16:
      return 65535;
    case DType::Int32:
      return INT32_MAX;
    case DType::UInt32:
      return UINT32_MAX;
    case DType::Int48:
      return (int64_t{1} << 47) - 1;
    case DType::Int64:
    case DType::Shape:
      return INT64_MAX;
    default:
      return 0;
  }
}

/// The DType of a C++ element type, for Tensor::as<T>(): float -> Float32, int8_t -> Int8, ...
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::Int8;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::UInt8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::Int16;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::UInt16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::Int32;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::UInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::Int64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::Float32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::Float64;
};

}  // namespace carina
