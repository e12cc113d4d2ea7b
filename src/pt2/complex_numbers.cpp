// SPDX-License-Identifier: Apache-2.0
#include "pt2/complex_numbers.hpp"

#include "aten/ops.hpp"
#include "pt2/scalar_type.hpp"

namespace carina::pt2 {
namespace {

// The serializer's numbers of complex32, complex64 and complex128, and of their parts' types.
constexpr int64_t kFirstComplex = 9, kLastComplex = 11, kFirstPart = 6;

}  // namespace

bool isComplex(const TensorMeta& meta) {
  return meta.scalarType >= kFirstComplex && meta.scalarType <= kLastComplex;
}

bool isComplex(const GraphDocument& document, const std::string& name) {
  const auto it = document.tensors.find(name);
  return it != document.tensors.end() && isComplex(it->second);
}

std::string partName(const std::string& name, Part part) {
  return name + (part == Part::Real ? ".real" : ".imag");
}

int64_t partType(int64_t scalarType) {
  const bool complex = scalarType >= kFirstComplex && scalarType <= kLastComplex;
  return complex ? scalarType - kFirstComplex + kFirstPart : scalarType;
}

TensorMeta partMeta(const TensorMeta& meta) {
  TensorMeta part = meta;
  part.scalarType = partType(meta.scalarType);
  return part;
}

Result<StoredTensor> partOf(const StoredTensor& stored, Part part) {
  StoredTensor half = stored;
  const ScalarType* type = scalarTypeByName(stored.type->name == "complex32"   ? "float16"
                                            : stored.type->name == "complex64" ? "float32"
                                                                               : "float64");
  CARINA_CHECK(type, "the parts of complex numbers are floats");
  half.type = type;
  const auto doubled = [](int64_t& number) {
    const auto twice = checkedMul(number, 2);
    number = twice.value_or(0);
    return twice.has_value();
  };
  bool fits = doubled(half.offset);
  for (int64_t& stride : half.strides) fits = doubled(stride) && fits;
  if (!fits) return fail(Code::Damaged, "has strides or an offset that are too large");
  if (part == Part::Imag) ++half.offset;
  return half;
}

Result<Parts> findParts(const Scope& scope, const std::string& name) {
  if (!isComplex(scope.document, name)) {
    CARINA_TRY(ir::Value* const value, findValue(scope, name));
    return Parts{value, nullptr};
  }
  Parts parts;
  CARINA_TRY(parts.real, findValue(scope, partName(name, Part::Real)));
  const auto imag = scope.values.find(partName(name, Part::Imag));
  if (imag != scope.values.end()) parts.imag = imag->second;
  return parts;
}

Status defineParts(Scope& scope, const std::string& name, const Parts& parts) {
  const auto define = [&](ir::Value* value, Part part) {
    return !value || scope.values.emplace(partName(name, part), value).second;
  };
  if (!define(parts.real, Part::Real) || !define(parts.imag, Part::Imag))
    return fail(Code::InvalidGraph, "the value '{}' is defined twice", name);
  return {};
}

ir::Value* joinParts(const ir::Builder& builder, const Parts& parts) {
  ir::Value* imag = parts.imag ? parts.imag : aten::ZerosLike::create(builder, parts.real);
  return aten::Stack::create(builder, {parts.real, imag}, int64_t{-1});
}

Parts splitParts(const ir::Builder& builder, ir::Value* pairs) {
  return {aten::SelectInt::create(builder, pairs, int64_t{-1}, int64_t{0}),
          aten::SelectInt::create(builder, pairs, int64_t{-1}, int64_t{1})};
}

}  // namespace carina::pt2
