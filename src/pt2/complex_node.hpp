// SPDX-License-Identifier: Apache-2.0
// A node that computes with complex numbers: its arguments and its result, for those that translate it.
#pragma once

#include <string>
#include <string_view>

#include "ir/op_view.hpp"
#include "pt2/complex_numbers.hpp"

namespace carina::pt2 {

/// "torch.ops.aten.mul_.Tensor" -> "mul_"; empty for operators that are not in aten.
std::string_view baseOf(std::string_view target);
/// Whether the name is that of an operator that writes its first operand.
bool isInPlace(std::string_view base);

class ComplexNode {
 public:
  ComplexNode(const NodeDocument& node, Scope& scope);

  /// Arguments that are not known could change the result.
  Status checkArguments() const;

 protected:
  /// Null if the argument is absent or None.
  const Argument* find(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  ir::Ints ints(std::string_view name) const;
  /// A tensor or a number as complex numbers.
  Result<Parts> parts(std::string_view name);
  Error unsupported(std::string_view what) const;

  const std::string& resultName() const { return node_.outputs[0].names[0]; }
  /// Of real numbers that are combined with the complex numbers of this node.
  DType partDType() const;
  /// A number of that type.
  ir::Value* number(double value);
  /// Defines the only result, after writing it to the first operand if the operator is in-place.
  Status define(Parts result);
  Status define(ir::Value* real, ir::Value* imag) { return define(Parts{real, imag}); }

  const NodeDocument& node_;
  Scope& scope_;
  std::string_view base_;
  ir::Builder builder_;

 private:
  bool hasArgument(std::string_view name) const;
  void rename(ir::Value* value, const std::string& name);
  Result<Parts> written(const Parts& self, const Parts& value);
};

}  // namespace carina::pt2
