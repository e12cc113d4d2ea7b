// SPDX-License-Identifier: Apache-2.0
// Dispatch from a runtime element type to a C++ type.
#pragma once

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::aten {

inline Error unsupportedType(DType dtype) {
  return Error(
      Diagnostic{fmt::format("computation on elements of type {} is not supported here", dtypeName(dtype)),
                 "cast the tensor to float32 or int64 before this operator", "", "", Code::WrongElementType});
}

/// Calls f(T{}) with the C++ type of float32 or float64.
template <typename F>
Status forFloat(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32:
      return f(float{});
    case DType::Float64:
      return f(double{});
    default:
      return unsupportedType(dtype);
  }
}

/// Floats and 8 to 64 bit integers; Bool as uint8_t if `withBool`.
template <typename F>
Status forNumber(DType dtype, F&& f, bool withBool = false) {
  switch (dtype) {
    case DType::Bool:
      return withBool ? f(uint8_t{}) : Status(unsupportedType(dtype));
    case DType::UInt8:
      return f(uint8_t{});
    case DType::Int8:
      return f(int8_t{});
    case DType::Int16:
      return f(int16_t{});
    case DType::Int32:
      return f(int32_t{});
    case DType::Int64:
      return f(int64_t{});
    case DType::Float32:
      return f(float{});
    case DType::Float64:
      return f(double{});
    default:
      return unsupportedType(dtype);
  }
}

/// Uses an unsigned type of the element's size, for kernels that only move elements.
template <typename F>
Status forSize(DType dtype, F&& f) {
  switch (dtypeSize(dtype)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

}  // namespace carina::aten
