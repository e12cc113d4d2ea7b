// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.hpp"

#include <array>
#include <utility>

namespace carina {
namespace {
constexpr std::array<std::pair<DType, std::string_view>, 15> kNames{{
    {DType::Bool, "bool"},
    {DType::Int4, "i4"},
    {DType::Int8, "i8"},
    {DType::UInt8, "u8"},
    {DType::Int16, "i16"},
    {DType::UInt16, "u16"},
    {DType::Int32, "i32"},
    {DType::UInt32, "u32"},
    {DType::Int48, "i48"},
    {DType::Int64, "i64"},
    {DType::Float16, "f16"},
    {DType::BFloat16, "bf16"},
    {DType::Float32, "f32"},
    {DType::Float64, "f64"},
    {DType::Shape, "shape"},
}};
}  // namespace

std::string_view dtypeName(DType dtype) {
  for (const auto& [type, name] : kNames) {
    if (type == dtype) return name;
  }
  return "?";
}

std::optional<DType> dtypeFromName(std::string_view name) {
  for (const auto& [type, typeName] : kNames) {
    if (typeName == name) return type;
  }
  return std::nullopt;
}

}  // namespace carina
