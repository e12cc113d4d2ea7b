// SPDX-License-Identifier: Apache-2.0
// Folds what recurrences compute from states that are initially zero.
#pragma once

#include "ir/graph.hpp"

namespace carina::compiler {

/// Removes operations of an npu graph whose result is known because a constant operand is zero throughout: a
/// convolution without bias and a product give zeros, a sum gives its other operand. No replacement takes
/// more memory than the constants that are removed.
void foldZeros(ir::Graph& graph);

}  // namespace carina::compiler
