// SPDX-License-Identifier: Apache-2.0
// Tensors without elements: PyTorch accepts them nearly everywhere, an NPU nowhere. They are eliminated here,
// so that later stages need not handle a size of 0.
#pragma once

#include "ir/graph.hpp"

namespace carina::decompose {

/// Removes every tensor with a size of 0 from a functional graph: nodes that compute one are removed (it has
/// no contents), concatenations drop such parts, and empty sums and products become constants. Afterwards no
/// node has an operand or a result without elements. Fails on program inputs or outputs without elements, and
/// on operators whose result depends on one in any other way; with the place of each.
Status removeEmptyTensors(ir::Graph& graph);

}  // namespace carina::decompose
