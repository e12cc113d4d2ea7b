// SPDX-License-Identifier: Apache-2.0
// PyTorch's element type promotion: tensors with dimensions outrank scalars of the same category, and those
// outrank numbers.
#pragma once

#include <optional>

#include "ir/graph.hpp"

namespace carina::aten {

/// Collects the operands of one operator and gives the type they are computed in.
class Promotion {
 public:
  Promotion& add(const ir::Type& type);
  Promotion& add(const ir::Value* value) { return value ? add(value->type) : *this; }
  /// A Scalar attribute; an absent one counts for nothing.
  Promotion& add(const ir::Attribute& number);

  /// Fails when the operands have no common type (16 to 32 bit unsigned integers mix with nothing).
  Result<DType> type() const;

 private:
  using Rank = std::optional<DType>;
  void merge(Rank& rank, DType dtype);
  Rank tensors_, scalars_, numbers_;
  bool impossible_ = false;
};

/// Products of matrices and convolutions take numbers of one type; bool is none.
Status checkFactors(const ir::Node& node);

/// The smallest type that holds both, for operands of the same class.
std::optional<DType> joinTypes(DType a, DType b);

/// Integers and Bool become Float32, floats stay: the result type of exp, div, sigmoid, ...
inline DType floatTypeOf(DType dtype) {
  return isFloat(dtype) ? dtype : DType::Float32;
}

}  // namespace carina::aten
