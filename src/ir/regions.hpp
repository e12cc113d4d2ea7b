// SPDX-License-Identifier: Apache-2.0
// The graphs nested in a graph.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::ir {

/// A graph, then the regions of its nodes in order, each followed by the regions nested in it. The position
/// in this list also identifies a graph in copies.
std::vector<const Graph*> graphsWithin(const Graph& graph);

}  // namespace carina::ir
