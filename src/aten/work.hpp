// SPDX-License-Identifier: Apache-2.0
// How much the float executor has to do, known from the shapes before it begins (base/work_budget.hpp).
#pragma once

#include "ir/graph.hpp"

namespace carina::aten {

/// Steps of about a nanosecond of one core for one run. Choices count both sides, while_loop one turn, loops
/// over slices all of theirs.
double workOf(const ir::Graph& graph);
/// The same of a node.
double workOf(const ir::Node& node);

}  // namespace carina::aten
