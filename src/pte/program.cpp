// SPDX-License-Identifier: Apache-2.0
#include "pte/program.hpp"

#include <fmt/ranges.h>

namespace carina::pte {

std::string scalarTypeName(ScalarType type) {
  switch (type) {
    case ScalarType::UInt8:
      return "uint8";
    case ScalarType::Int8:
      return "int8";
    case ScalarType::Int16:
      return "int16";
    case ScalarType::Int32:
      return "int32";
    case ScalarType::Int64:
      return "int64";
    case ScalarType::Float16:
      return "float16";
    case ScalarType::Float32:
      return "float32";
    case ScalarType::Float64:
      return "float64";
    case ScalarType::Bool:
      return "bool";
    case ScalarType::QInt8:
      return "qint8";
    case ScalarType::QUInt8:
      return "quint8";
    case ScalarType::QInt32:
      return "qint32";
    case ScalarType::BFloat16:
      return "bfloat16";
    case ScalarType::QUInt4x2:
      return "quint4x2";
    case ScalarType::QUInt2x4:
      return "quint2x4";
    case ScalarType::Bits16:
      return "bits16";
    case ScalarType::Float8E5M2:
      return "float8_e5m2";
    case ScalarType::Float8E4M3FN:
      return "float8_e4m3fn";
    case ScalarType::Float8E5M2FNUZ:
      return "float8_e5m2fnuz";
    case ScalarType::Float8E4M3FNUZ:
      return "float8_e4m3fnuz";
    case ScalarType::UInt16:
      return "uint16";
    case ScalarType::UInt32:
      return "uint32";
    case ScalarType::UInt64:
      return "uint64";
  }
  return fmt::format("type {}", static_cast<int>(type));
}

int64_t scalarTypeSize(ScalarType type) {
  switch (type) {
    case ScalarType::UInt8:
    case ScalarType::Int8:
    case ScalarType::Bool:
    case ScalarType::QInt8:
    case ScalarType::QUInt8:
    case ScalarType::QUInt4x2:
    case ScalarType::QUInt2x4:
    case ScalarType::Float8E5M2:
    case ScalarType::Float8E4M3FN:
    case ScalarType::Float8E5M2FNUZ:
    case ScalarType::Float8E4M3FNUZ:
      return 1;
    case ScalarType::Int16:
    case ScalarType::UInt16:
    case ScalarType::Float16:
    case ScalarType::BFloat16:
    case ScalarType::Bits16:
      return 2;
    case ScalarType::Int32:
    case ScalarType::UInt32:
    case ScalarType::Float32:
    case ScalarType::QInt32:
      return 4;
    case ScalarType::Int64:
    case ScalarType::UInt64:
    case ScalarType::Float64:
      return 8;
  }
  return 0;
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
