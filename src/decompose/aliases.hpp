// SPDX-License-Identifier: Apache-2.0
// Operators that are others under another name ("aliases" of the rows in src/aten/operators): numpy's names
// ("aten.absolute.default"), PyTorch's own doublets ("aten.concat.default"), and copies of views
// ("aten.slice_copy.Tensor"), which are views where nothing is written.
#pragma once

#include "ir/graph.hpp"

namespace carina::decompose {

/// Keep: graphs that write into tensors, where a copy of a view is not the view. Replace: functional graphs
/// (functionalize.hpp).
enum class Copies : uint8_t { Keep, Replace };

/// Puts the operator that has a row in the place of its aliases, in nested graphs too. Fails where that
/// operator refuses the operands.
Status replaceAliases(ir::Graph& graph, Copies copies);

}  // namespace carina::decompose
