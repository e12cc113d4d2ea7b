// SPDX-License-Identifier: Apache-2.0
// What a network may make this machine do while it is compiled and compared (base/work_budget.hpp).
#pragma once

#include "base/work_budget.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// For one execution of the network or of what was made of it: by the bytes of network and calibration data.
/// Graphs without a file have no limits.
WorkBudget budgetOf(const Options& options);

/// Whether all values of the graph together fit into the memory, for who keeps them `copies` times.
Status checkValues(const ir::Graph& graph, const WorkBudget& budget, int copies = 1);
/// Whether the compiler may work on the graph: what is alive at once, with constants of that size beside it.
Status checkTensors(const ir::Graph& graph, const WorkBudget& budget);

/// Takes `runs` runs of the float executor, which folding constants counts as, out of the budget. Error:
/// there is not as much left, or the values of one run need more memory.
Status checkWork(const ir::Graph& graph, size_t runs, WorkBudget& budget);

}  // namespace carina::pipeline
