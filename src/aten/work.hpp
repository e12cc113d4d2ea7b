// SPDX-License-Identifier: Apache-2.0
// Estimates the work of the float executor from the shapes, before it runs (base/work_budget.hpp).
#pragma once

#include "ir/graph.hpp"

namespace carina::aten {

/// Work of one run, in steps of about a nanosecond on one core. cond counts both branches, while_loop one
/// iteration, loops over slices all of their iterations.
double workOf(const ir::Graph& graph);
/// The same for one node.
double workOf(const ir::Node& node);

}  // namespace carina::aten
