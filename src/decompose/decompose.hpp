// SPDX-License-Identifier: Apache-2.0
// Decomposes composite aten operators into the small set that the quantizer annotates and lowerToTosa knows.
#pragma once

#include <functional>

#include "ir/graph.hpp"

namespace carina::decompose {

/// Rewrites in place; float results stay equal up to rounding. Identities are removed, constants folded,
/// in-place forms must already be gone. Unknown operators are not changed (the partitioner decides where they
/// run). Nodes that are kept for the CPU, which has kernels for larger operators, stay as they are.
Status forNpu(ir::Graph& graph, const std::function<bool(const ir::Node&)>& isKept = {});

/// Rewrites the operators left for the CPU into operators that `hasKernel` knows; regions of delegates are
/// not changed. Float results stay equal up to rounding. Constant expressions are computed, including
/// dequantized weights. Operators without such a form are kept.
Status forKernels(ir::Graph& graph, const std::function<bool(const ir::Node&)>& hasKernel);

}  // namespace carina::decompose
