// SPDX-License-Identifier: Apache-2.0
// How much the interpreter has to do for a node, known from the shapes before it begins
// (base/work_budget.hpp).
#pragma once

#include "ir/graph.hpp"

namespace carina::tosa {

/// Steps of about a nanosecond of one core. Of control flow, what it costs to begin it.
double workOf(const ir::Node& node);
double workOf(const ir::Graph& graph);

}  // namespace carina::tosa
