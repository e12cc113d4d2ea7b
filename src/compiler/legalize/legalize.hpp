// SPDX-License-Identifier: Apache-2.0
// From TOSA to the npu dialect of one target. RESCALE, CLAMP and TABLE are fused into the operations around
// them wherever the result is provably the same; everything else becomes operations of its own.
#pragma once

#include "ir/graph.hpp"
#include "npu/targets/target.hpp"

namespace carina::compiler {

/// Inputs and outputs correspond one to one and keep type and shape. Errors name the operator, the limit and
/// the value.
Result<ir::Graph> legalize(const ir::Graph& tosa, const npu::Target& target);

}  // namespace carina::compiler
