// SPDX-License-Identifier: Apache-2.0
// The operator that represents an NPU part in a program graph.
#include "partition/partition.hpp"

namespace carina::partition {

const ir::OpDef& delegateCallDef() {
  static constexpr ir::OperandDef kOperands[] = {{"inputs", ir::Arity::Variadic, false}};
  static constexpr ir::ResultDef kResults[] = {{"outputs", ir::Arity::Variadic}};
  static constexpr ir::OpDef kDef{
      "program.delegate_call", 0, 1, ir::kPure, kOperands, kResults, {}, nullptr, nullptr};
  return kDef;
}

}  // namespace carina::partition
