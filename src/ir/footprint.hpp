// SPDX-License-Identifier: Apache-2.0
// Memory that a graph's values need if it is executed node by node.
#pragma once

#include "ir/graph.hpp"

namespace carina::ir {

struct Footprint {
  int64_t bytes = 0;         // peak of the live values: inputs and results, not constants
  const Node* at = nullptr;  // the node that runs at the peak; null if it is the inputs alone
};

/// Values live from their node to their last user, inputs of the graph throughout, outputs to the end.
Footprint footprintOf(const Graph& graph);

}  // namespace carina::ir
