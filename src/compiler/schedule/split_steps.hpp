// SPDX-License-Identifier: Apache-2.0
// Splits layers that are computed for all steps of a sequence at once over ranges of steps, each placed
// immediately before its first reader, so that their results need not be in memory at the same time.
#pragma once

#include "compiler/dialect/npu_ir.hpp"

namespace carina::compiler {

/// Splits every 1x1 CONV (no stride, no padding) whose result is only read in ranges of rows into at most
/// `most` parts of about as many rows each; no range is divided. Each part reads the same weights again.
/// Returns the largest number of parts that any CONV would be split into without that limit, 0 if there is
/// nothing to split. The graph must be made addressable afterwards.
int64_t splitSteps(ir::Graph& graph, int64_t most);

}  // namespace carina::compiler
