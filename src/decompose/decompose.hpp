// SPDX-License-Identifier: Apache-2.0
// Composite aten operators into the small set that the quantizer annotates and lowerToTosa knows.
#pragma once

#include <functional>

#include "ir/graph.hpp"

namespace carina::decompose {

/// Rewrites in place; float results stay equal up to rounding. Identities are removed, constants folded,
/// in-place forms are expected to be gone. Operators it does not know are left alone (the partitioner will
/// say where they run).
Status forNpu(ir::Graph& graph);

/// Rewrites what is left for the CPU into operators that `hasKernel` knows; what is inside regions
/// (delegates) stays. Float results stay equal up to rounding. What depends on constants only is computed
/// here, dequantized weights too. Operators without such a form stay as they are.
Status forKernels(ir::Graph& graph, const std::function<bool(const ir::Node&)>& hasKernel);

}  // namespace carina::decompose
