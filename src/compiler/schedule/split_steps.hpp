// SPDX-License-Identifier: Apache-2.0
// Layers that are computed for all steps of a sequence at once become several over ranges of steps, each
// right in front of whoever reads it first, so that their results need not be in memory at one time.
#pragma once

#include "compiler/dialect/npu_ir.hpp"

namespace carina::compiler {

/// Splits every CONV of single positions (1x1, no stride, no padding) whose result is read in ranges of rows
/// only, into at most `most` parts with about as many rows each; no range is torn apart. The parts read the
/// same weights once more each. Returns the largest number of parts that some CONV was or would have been
/// split into without that limit, 0: there is nothing to split. To be made addressable afterwards.
int64_t splitSteps(ir::Graph& graph, int64_t most);

}  // namespace carina::compiler
