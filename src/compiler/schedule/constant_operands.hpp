// SPDX-License-Identifier: Apache-2.0
// Constant operands of elementwise operations, put where reading them costs least.
#pragma once

#include "compiler/dialect/npu_ir.hpp"
#include "npu/targets/target.hpp"

namespace carina::compiler {

/// Before a graph is made addressable:
/// - A reshape of a constant becomes a constant, so that a number is one for the scalar register.
/// - Ethos-U55 and U65 fetch an operand that is broadcast for every element of the result. Where constants
///   are slow, the operation reads a copy in fast memory instead, made just before it.
void settleConstantOperands(ir::Graph& graph, const npu::Machine& machine);

}  // namespace carina::compiler
