// SPDX-License-Identifier: Apache-2.0
// How much memory a graph's values take when it is executed node by node.
#pragma once

#include "ir/graph.hpp"

namespace carina::ir {

struct Footprint {
  int64_t bytes = 0;         // the most that is alive at once: inputs, results, not constants
  const Node* at = nullptr;  // the node that runs then; null when the inputs alone are the most
};

/// Values live from their node to the last one that uses them, those that the graph takes and returns
/// throughout.
Footprint footprintOf(const Graph& graph);

}  // namespace carina::ir
