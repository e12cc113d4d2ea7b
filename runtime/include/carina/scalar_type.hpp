// SPDX-License-Identifier: Apache-2.0
// Element types, numbered as in ExecuTorch programs.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace carina::rt {

// X(name, number, text, bytes of one element)
// clang-format off
#define CARINA_SCALAR_TYPES(X) \
  X(UInt8, 0, "uint8", 1) \
  X(Int8, 1, "int8", 1) \
  X(Int16, 2, "int16", 2) \
  X(Int32, 3, "int32", 4) \
  X(Int64, 4, "int64", 8) \
  X(Float16, 5, "float16", 2) \
  X(Float32, 6, "float32", 4) \
  X(Float64, 7, "float64", 8) \
  X(Bool, 11, "bool", 1) \
  X(BFloat16, 15, "bfloat16", 2) \
  X(UInt16, 27, "uint16", 2) \
  X(UInt32, 28, "uint32", 4) \
  X(UInt64, 29, "uint64", 8)
// clang-format on

#define CARINA_TYPE(name, number, text, bytes) name = number,
enum class ScalarType : int8_t { CARINA_SCALAR_TYPES(CARINA_TYPE) };
#undef CARINA_TYPE

/// Bytes of one element; 0 for numbers of other types (quantized, packed or 8-bit float ones among them).
constexpr size_t elementSize(ScalarType type) {
  switch (type) {
#define CARINA_TYPE(name, number, text, bytes) \
  case ScalarType::name:                       \
    return bytes;
    CARINA_SCALAR_TYPES(CARINA_TYPE)  // NOLINT(bugprone-branch-clone): a case for each type
#undef CARINA_TYPE
  }
  return 0;
}

/// "int8", "float32", ...; "unknown" for other numbers.
constexpr const char* scalarTypeText(ScalarType type) {
  switch (type) {
#define CARINA_TYPE(name, number, text, bytes) \
  case ScalarType::name:                       \
    return text;
    CARINA_SCALAR_TYPES(CARINA_TYPE)
#undef CARINA_TYPE
  }
  return "unknown";
}

}  // namespace carina::rt
