// SPDX-License-Identifier: Apache-2.0
#include "pt2/scalar_type.hpp"

#include <array>

namespace carina::pt2 {
namespace {

struct Row {
  int64_t number;
  std::string_view storage;
  ScalarType type;
};

constexpr std::array<Row, 21> kRows{{
    {1, "ByteStorage", {"uint8", 1, DType::UInt8}},
    {2, "CharStorage", {"int8", 1, DType::Int8}},
    {3, "ShortStorage", {"int16", 2, DType::Int16}},
    {4, "IntStorage", {"int32", 4, DType::Int32}},
    {5, "LongStorage", {"int64", 8, DType::Int64}},
    {6, "HalfStorage", {"float16", 2, DType::Float16}},
    {7, "FloatStorage", {"float32", 4, DType::Float32}},
    {8, "DoubleStorage", {"float64", 8, DType::Float64}},
    {9, "", {"complex32", 4, std::nullopt}},
    {10, "ComplexFloatStorage", {"complex64", 8, std::nullopt}},
    {11, "ComplexDoubleStorage", {"complex128", 16, std::nullopt}},
    {12, "BoolStorage", {"bool", 1, DType::Bool}},
    {13, "BFloat16Storage", {"bfloat16", 2, DType::BFloat16}},
    {28, "", {"uint16", 2, DType::UInt16}},
    {29, "", {"float8_e4m3fn", 1, std::nullopt}},
    {30, "", {"float8_e5m2", 1, std::nullopt}},
    {31, "", {"float8_e4m3fnuz", 1, std::nullopt}},
    {32, "", {"float8_e5m2fnuz", 1, std::nullopt}},
    {33, "", {"float8_e8m0fnu", 1, std::nullopt}},
    {34, "", {"uint32", 4, DType::UInt32}},
    {35, "", {"uint64", 8, std::nullopt}},
}};

template <typename Predicate>
const ScalarType* findType(Predicate predicate) {
  for (const Row& row : kRows) {
    if (predicate(row)) return &row.type;
  }
  return nullptr;
}

}  // namespace

const ScalarType* scalarTypeByNumber(int64_t number) {
  return findType([&](const Row& row) { return row.number == number; });
}

const ScalarType* scalarTypeByStorage(std::string_view storageClass) {
  return findType([&](const Row& row) { return !row.storage.empty() && row.storage == storageClass; });
}

const ScalarType* scalarTypeByName(std::string_view name) {
  return findType([&](const Row& row) { return row.type.name == name; });
}

Result<DType> supportedType(const ScalarType& type) {
  if (type.dtype) return *type.dtype;
  const bool complex = type.name.substr(0, 7) == "complex";
  return fail(Code::WrongElementType, "has the element type {}, which is not supported", type.name)
      .withRemedy(complex ? "Split it into real and imaginary parts before export."
                          : "Convert it to a type of int8 to int64, uint8 to uint32, float16, bfloat16, "
                            "float32 or float64.");
}

}  // namespace carina::pt2
