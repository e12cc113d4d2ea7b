// SPDX-License-Identifier: Apache-2.0
// Operators that are aliases of other operators (of the rows in src/aten/operators): numpy's names
// ("aten.absolute.default"), PyTorch's own duplicates ("aten.concat.default"), and copies of views
// ("aten.slice_copy.Tensor"), which are views if nothing is written.
#pragma once

#include "ir/graph.hpp"

namespace carina::decompose {

/// Keep: graphs that write into tensors, where a copy of a view is not the view. Replace: functional graphs
/// (functionalize.hpp).
enum class Copies : uint8_t { Keep, Replace };

/// Replaces aliases by the operator that has a row, including in nested graphs. Fails if that operator
/// rejects the operands.
Status replaceAliases(ir::Graph& graph, Copies copies);

}  // namespace carina::decompose
