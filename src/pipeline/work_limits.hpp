// SPDX-License-Identifier: Apache-2.0
// Limits on the work that a network may cause on this machine while it is compiled and compared
// (base/work_budget.hpp).
#pragma once

#include "base/work_budget.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// For one execution of the network or of its compiled form, derived from the bytes of network and
/// calibration data. Graphs without a file have no limits.
WorkBudget budgetOf(const Options& options);

/// Whether all values of the graph together fit into memory, for a caller that keeps `copies` of them.
Status checkValues(const ir::Graph& graph, const WorkBudget& budget, int copies = 1);
/// Whether the compiler may process the graph: checks what is live at once, allowing for constants of the
/// same size.
Status checkTensors(const ir::Graph& graph, const WorkBudget& budget);

/// Charges `runs` runs of the float executor to the budget; constant folding counts as one. Errors: the
/// budget is exceeded, or the values of one run need more memory.
Status checkWork(const ir::Graph& graph, size_t runs, WorkBudget& budget);

}  // namespace carina::pipeline
