// SPDX-License-Identifier: Apache-2.0
// PyTorch's element type promotion: tensors with dimensions take precedence over scalar tensors of the same
// category, and those over numbers.
#pragma once

#include <optional>

#include "ir/graph.hpp"

namespace carina::aten {

/// Collects the operands of one operator and determines the type they are computed in.
class Promotion {
 public:
  Promotion& add(const ir::Type& type);
  Promotion& add(const ir::Value* value) { return value ? add(value->type) : *this; }
  /// A Scalar attribute; an absent one is ignored.
  Promotion& add(const ir::Attribute& number);

  /// Fails if the operands have no common type (16 to 32 bit unsigned integers do not mix with other types).
  Result<DType> type() const;

 private:
  using Rank = std::optional<DType>;
  void merge(Rank& rank, DType dtype);
  Rank tensors_, scalars_, numbers_;
  bool impossible_ = false;
};

/// Matrix products and convolutions require operands of one numeric type; bool is not allowed.
Status checkFactors(const ir::Node& node);

/// The smallest type that can hold both, for operands of the same class.
std::optional<DType> joinTypes(DType a, DType b);

/// Integers and Bool become Float32, floats keep their type: the result type of exp, div, sigmoid, ...
inline DType floatTypeOf(DType dtype) {
  return isFloat(dtype) ? dtype : DType::Float32;
}

}  // namespace carina::aten
