// SPDX-License-Identifier: Apache-2.0
// Structural and operator-level checks of a graph.
#pragma once

#include "ir/graph.hpp"

namespace carina::ir {

/// Every operand is defined before its use in the same graph, uses match, arities and attribute kinds fit the table,
/// recorded result types equal the inferred ones, operator verifiers agree; nested regions too. Collects all errors, at most 20.
Status verify(const Graph& graph);

}  // namespace carina::ir
