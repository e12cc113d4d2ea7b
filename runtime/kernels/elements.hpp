// SPDX-License-Identifier: Apache-2.0
// Small helpers that several kernels share.
#pragma once

#include "carina/kernel.hpp"

namespace carina::rt::kernels {

/// Calls `function` with a value of the element type: int8, uint8 (also bool), int16, uint16, int32, int64.
template <typename Function>
Status withInteger(ScalarType type, Function&& function) {
  switch (type) {
    case ScalarType::Int8:
      return function(int8_t{});
    case ScalarType::UInt8:
    case ScalarType::Bool:
      return function(uint8_t{});
    case ScalarType::Int16:
      return function(int16_t{});
    case ScalarType::UInt16:
      return function(uint16_t{});
    case ScalarType::Int32:
      return function(int32_t{});
    case ScalarType::Int64:
      return function(int64_t{});
    default:
      return failure(Code::TypeMismatch, "the kernel does not take this element type");
  }
}

constexpr bool isReal(ScalarType type) {
  return type == ScalarType::Float32;
}
/// Integers of the types above, and Bool.
constexpr bool isInteger(ScalarType type) {
  return type == ScalarType::Int8 || type == ScalarType::UInt8 || type == ScalarType::Int16 ||
         type == ScalarType::UInt16 || type == ScalarType::Int32 || type == ScalarType::Int64 ||
         type == ScalarType::Bool;
}
/// Float to integer truncates toward zero and saturates; NaN becomes 0.
inline int64_t truncated(float value) {
  if (value != value) return 0;
  if (value >= 9223372036854775808.0f) return INT64_MAX;
  if (value <= -9223372036854775808.0f) return INT64_MIN;
  return static_cast<int64_t>(value);
}

inline bool sameShape(const Tensor& a, const Tensor& b) {
  if (a.rank != b.rank) return false;
  for (uint32_t d = 0; d < a.rank; ++d) {
    if (a.sizes[d] != b.sizes[d]) return false;
  }
  return true;
}
inline bool sameLayout(const Tensor& a, const Tensor& b) {
  if (!sameShape(a, b)) return false;
  for (uint32_t d = 0; d < a.rank; ++d) {
    if (a.dimOrder[d] != b.dimOrder[d]) return false;
  }
  return true;
}
inline bool isRowMajor(const Tensor& tensor) {
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (tensor.dimOrder[d] != d) return false;
  }
  return true;
}
/// Strides in elements by logical dimension.
inline void strides(const Tensor& tensor, size_t* result) {
  size_t step = 1;
  for (uint32_t k = tensor.rank; k-- > 0;) {
    const uint8_t d = tensor.dimOrder[k];
    result[d] = step;
    if (tensor.sizes[d] > 0) step *= static_cast<size_t>(tensor.sizes[d]);
  }
}

constexpr Status shapesDiffer() {
  return failure(Code::ShapeMismatch, "operator inputs and output differ in shape or layout");
}
constexpr Status typesDiffer() {
  return failure(Code::TypeMismatch, "the kernel does not take this element type");
}

}  // namespace carina::rt::kernels
