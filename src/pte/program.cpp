// SPDX-License-Identifier: Apache-2.0
#include "pte/program.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace carina::pte {

namespace {

/// Types that ExecuTorch knows and no tensor of Carina or its runtime has: files that hold them are shown.
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
  switch (type) {
    case ScalarType::UInt8:
      return DType::UInt8;
    case ScalarType::Int8:
      return DType::Int8;
    case ScalarType::Int16:
      return DType::Int16;
    case ScalarType::UInt16:
      return DType::UInt16;
    case ScalarType::Int32:
      return DType::Int32;
    case ScalarType::UInt32:
      return DType::UInt32;
    case ScalarType::Int64:
      return DType::Int64;
    case ScalarType::Float16:
      return DType::Float16;
    case ScalarType::BFloat16:
      return DType::BFloat16;
    case ScalarType::Float32:
      return DType::Float32;
    case ScalarType::Float64:
      return DType::Float64;
    case ScalarType::Bool:
      return DType::Bool;
    default:
      return std::nullopt;
  }
}

ScalarType fromDType(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return ScalarType::Bool;
    case DType::Int4:
    case DType::Int8:
      return ScalarType::Int8;
    case DType::UInt8:
      return ScalarType::UInt8;
    case DType::Int16:
      return ScalarType::Int16;
    case DType::UInt16:
      return ScalarType::UInt16;
    case DType::Int32:
      return ScalarType::Int32;
    case DType::UInt32:
      return ScalarType::UInt32;
    case DType::Int48:
    case DType::Int64:
    case DType::Shape:
      return ScalarType::Int64;
    case DType::Float16:
      return ScalarType::Float16;
    case DType::BFloat16:
      return ScalarType::BFloat16;
    case DType::Float32:
      return ScalarType::Float32;
    case DType::Float64:
      return ScalarType::Float64;
  }
  CARINA_UNREACHABLE("element type");
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
