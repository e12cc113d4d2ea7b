// SPDX-License-Identifier: Apache-2.0
// Estimates the work of the interpreter for a node from the shapes, before it runs (base/work_budget.hpp).
#pragma once

#include "ir/graph.hpp"

namespace carina::tosa {

/// Work in steps of about a nanosecond on one core. For control flow, the cost of starting it.
double workOf(const ir::Node& node);
double workOf(const ir::Graph& graph);

}  // namespace carina::tosa
