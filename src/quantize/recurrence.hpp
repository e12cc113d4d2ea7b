// SPDX-License-Identifier: Apache-2.0
// Steps of recurrences that stand one after the other in a graph.
#pragma once

#include <utility>
#include <vector>

#include "ir/graph.hpp"

namespace carina::quantize {

/// Values at the same place of two successive steps. A layer that is applied again to something that depends
/// on its own result begins a step: its input, its result, and what the same operators make of the results in
/// both steps are pairs; so are the results of a layer that is applied to several slices of one value. Same
/// scales in all steps mean that one stream of weights and one table serves all.
std::vector<std::pair<const ir::Value*, const ir::Value*>> successiveValues(const ir::Graph& graph);

}  // namespace carina::quantize
