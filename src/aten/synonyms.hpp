// SPDX-License-Identifier: Apache-2.0
// Operators that are others under another name: numpy's names ("aten.absolute.default"), and copies of views
// ("aten.slice_copy.Tensor"), which are views where nothing is written.
#pragma once

#include "ir/graph.hpp"

namespace carina::aten {

/// Puts the plain operator in the place of each synonym whose operands and attributes are the same. For
/// functional graphs (functionalize.hpp). Fails where the plain operator refuses the operands.
Status replaceSynonyms(ir::Graph& graph);

}  // namespace carina::aten
