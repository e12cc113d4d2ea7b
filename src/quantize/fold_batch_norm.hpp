// SPDX-License-Identifier: Apache-2.0
// Folding of some batch norms.
#pragma once

#include <functional>

#include "ir/graph.hpp"

namespace carina::quantize {

/// foldBatchNorms() (quantize.hpp) for the nodes that are wanted.
Status foldBatchNormsOf(ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted);

}  // namespace carina::quantize
