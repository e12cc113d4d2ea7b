// SPDX-License-Identifier: Apache-2.0
#include "pte/program.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/pairs.hpp"

namespace carina::pte {

namespace {

/// Types that ExecuTorch knows but no tensor of Carina or its runtime has: files with them can be printed.
struct ForeignType {
  int8_t number;
  const char* name;
  int8_t bytes;
};
constexpr ForeignType kForeignTypes[] = {
    {12, "qint8", 1},           {13, "quint8", 1},          {14, "qint32", 4},      {16, "quint4x2", 1},
    {17, "quint2x4", 1},        {22, "bits16", 2},          {23, "float8_e5m2", 1}, {24, "float8_e4m3fn", 1},
    {25, "float8_e5m2fnuz", 1}, {26, "float8_e4m3fnuz", 1},
};

const ForeignType* foreignType(ScalarType type) {
  const auto* found =
      std::find_if(std::begin(kForeignTypes), std::end(kForeignTypes),
                   [&](const ForeignType& row) { return row.number == static_cast<int8_t>(type); });
  return found == std::end(kForeignTypes) ? nullptr : found;
}

/// The last three are stored in ExecuTorch types that are read back as other types.
constexpr std::pair<ScalarType, DType> kElementTypes[] = {
    {ScalarType::UInt8, DType::UInt8},       {ScalarType::Int8, DType::Int8},
    {ScalarType::Int16, DType::Int16},       {ScalarType::UInt16, DType::UInt16},
    {ScalarType::Int32, DType::Int32},       {ScalarType::UInt32, DType::UInt32},
    {ScalarType::Int64, DType::Int64},       {ScalarType::Float16, DType::Float16},
    {ScalarType::BFloat16, DType::BFloat16}, {ScalarType::Float32, DType::Float32},
    {ScalarType::Float64, DType::Float64},   {ScalarType::Bool, DType::Bool},
    {ScalarType::Int8, DType::Int4},         {ScalarType::Int64, DType::Int48},
    {ScalarType::Int64, DType::Shape}};

}  // namespace

std::string scalarTypeName(ScalarType type) {
  if (format::elementSize(type) > 0) return format::scalarTypeText(type);
  const ForeignType* foreign = foreignType(type);
  return foreign ? foreign->name : fmt::format("type {}", static_cast<int>(type));
}

int64_t scalarTypeSize(ScalarType type) {
  if (const size_t bytes = format::elementSize(type)) return static_cast<int64_t>(bytes);
  const ForeignType* foreign = foreignType(type);
  return foreign ? foreign->bytes : 0;
}

std::optional<DType> toDType(ScalarType type) {
  return secondOf(kElementTypes, type);
}

ScalarType fromDType(DType dtype) {
  const auto type = firstOf(kElementTypes, dtype);
  CARINA_CHECK(type.has_value(), "every element type has a row");
  return *type;
}

std::optional<int64_t> tensorBytes(const Tensor& tensor) {
  const auto elements = checkedNumElements(Shape(tensor.sizes.begin(), tensor.sizes.end()));
  const int64_t size = scalarTypeSize(tensor.type);
  if (!elements || size == 0) return std::nullopt;
  return checkedMul(*elements, size);
}

std::string Tensor::str() const {
  return fmt::format("{}[{}]", scalarTypeName(type), fmt::join(sizes, ","));
}

const Method* Program::findMethod(std::string_view name) const {
  for (const Method& method : methods) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

}  // namespace carina::pte
