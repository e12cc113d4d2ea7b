// SPDX-License-Identifier: Apache-2.0
// Places constant operands of elementwise operations where reading them costs least.
#pragma once

#include "compiler/dialect/npu_ir.hpp"
#include "npu/targets/target.hpp"

namespace carina::compiler {

/// Before a graph is made addressable:
/// - A reshape of a constant becomes a constant, so that a single value can go to the scalar register.
/// - Ethos-U55 and U65 fetch a broadcast operand again for every element of the result. If constants are
///   slow, the operation reads a copy in fast memory instead, made immediately before it.
void settleConstantOperands(ir::Graph& graph, const npu::Machine& machine);

}  // namespace carina::compiler
