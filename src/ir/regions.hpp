// SPDX-License-Identifier: Apache-2.0
// The graphs inside of a graph.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::ir {

/// A graph, then the regions of its nodes in order, those inside of them right behind each. The place in this
/// list names a graph wherever a copy of it stands.
std::vector<const Graph*> graphsWithin(const Graph& graph);

}  // namespace carina::ir
