// SPDX-License-Identifier: Apache-2.0
// Element types of all dialects.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace carina {

/// A row for each type: its name, its printed name, its bytes in a host Tensor, its kind, and the smallest
/// and largest value of integer types.
#define CARINA_DTYPES(ROW)                                                  \
  ROW(Bool, "bool", 1, Truth, 0, 1)                                         \
  ROW(Int4, "i4", 1, Signed, -8, 7)                                         \
  ROW(Int8, "i8", 1, Signed, -128, 127)                                     \
  ROW(UInt8, "u8", 1, Unsigned, 0, 255)                                     \
  ROW(Int16, "i16", 2, Signed, -32768, 32767)                               \
  ROW(UInt16, "u16", 2, Unsigned, 0, 65535)                                 \
  ROW(Int32, "i32", 4, Signed, INT32_MIN, INT32_MAX)                        \
  ROW(UInt32, "u32", 4, Unsigned, 0, UINT32_MAX)                            \
  ROW(Int48, "i48", 8, Signed, -(int64_t{1} << 47), (int64_t{1} << 47) - 1) \
  ROW(Int64, "i64", 8, Signed, INT64_MIN, INT64_MAX)                        \
  ROW(Float16, "f16", 2, Float, 0, 0)                                       \
  ROW(BFloat16, "bf16", 2, Float, 0, 0)                                     \
  ROW(Float32, "f32", 4, Float, 0, 0)                                       \
  ROW(Float64, "f64", 8, Float, 0, 0)                                       \
  ROW(Shape, "shape", 8, Shape, INT64_MIN, INT64_MAX)

/// Representation of one element in a host Tensor: Bool is one byte (0 or 1); Int4 one sign-extended byte per
/// element; Int48 one sign-extended int64; Shape (TOSA shape values) int64. All others have their natural
/// size, little-endian.
enum class DType : uint8_t {
#define CARINA_ROW(name, text, bytes, kind, low, high) name,
  CARINA_DTYPES(CARINA_ROW)
#undef CARINA_ROW
};

namespace dtypes {
enum class Kind : uint8_t { Truth, Signed, Unsigned, Float, Shape };
struct Row {
  std::string_view text;
  uint8_t bytes;
  Kind kind;
  int64_t low, high;
};
inline constexpr Row kRows[] = {
#define CARINA_ROW(name, text, bytes, kind, low, high) {text, bytes, Kind::kind, low, high},
    CARINA_DTYPES(CARINA_ROW)
#undef CARINA_ROW
};
constexpr const Row& row(DType dtype) {
  return kRows[static_cast<uint8_t>(dtype)];
}
}  // namespace dtypes

/// Short name as printers write it: "bool", "i8", "u8", "i48", "f32", "bf16", "shape", ...
constexpr std::string_view dtypeName(DType dtype) {
  return dtypes::row(dtype).text;
}
std::optional<DType> dtypeFromName(std::string_view name);

/// Bytes of one element in a host Tensor.
constexpr int64_t dtypeSize(DType dtype) {
  return dtypes::row(dtype).bytes;
}

constexpr bool isFloat(DType dtype) {
  return dtypes::row(dtype).kind == dtypes::Kind::Float;
}
constexpr bool isUnsigned(DType dtype) {
  return dtypes::row(dtype).kind == dtypes::Kind::Unsigned;
}
/// Integers of any width; Bool and Shape are neither integer nor float.
constexpr bool isInteger(DType dtype) {
  return dtypes::row(dtype).kind == dtypes::Kind::Signed || isUnsigned(dtype);
}

/// Smallest and largest value of an integer type (Int4: -8..7, Int48: 48-bit range; UInt32 fits int64).
constexpr int64_t integerMin(DType dtype) {
  return dtypes::row(dtype).low;
}
constexpr int64_t integerMax(DType dtype) {
  return dtypes::row(dtype).high;
}

/// The DType of a C++ element type, for Tensor::as<T>(): float -> Float32, int8_t -> Int8, ...
template <typename T>
struct DTypeOf;
#define CARINA_ELEMENT(type, name)              \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  };
CARINA_ELEMENT(int8_t, Int8)
CARINA_ELEMENT(uint8_t, UInt8)
CARINA_ELEMENT(int16_t, Int16)
CARINA_ELEMENT(uint16_t, UInt16)
CARINA_ELEMENT(int32_t, Int32)
CARINA_ELEMENT(uint32_t, UInt32)
CARINA_ELEMENT(int64_t, Int64)
CARINA_ELEMENT(float, Float32)
CARINA_ELEMENT(double, Float64)
#undef CARINA_ELEMENT

}  // namespace carina
