// SPDX-License-Identifier: Apache-2.0
// Exported graphs write into tensors ("aten.relu_.default", "aten.copy_.default" on a slice). This rewrite
// makes them functional: afterwards no node writes to an operand.
#pragma once

#include <unordered_set>

#include "ir/graph.hpp"

namespace carina::decompose {

/// Replaces every in-place operator by its functional form: later uses of the written value, of the tensors
/// it is a view of and of their other views see the new contents. Writes that reach a graph input or a
/// constant do not leave the graph. Fails (operator, node, remedy) on writes through views that cannot be
/// inverted (expand, as_strided). `copies` are results of view operators that have their own contents (a
/// reshape of a transposed tensor): writes to them do not propagate.
Status functionalize(ir::Graph& graph, const std::unordered_set<const ir::Value*>& copies = {});

}  // namespace carina::decompose
