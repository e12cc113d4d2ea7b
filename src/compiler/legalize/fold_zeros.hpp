// SPDX-License-Identifier: Apache-2.0
// What recurrences compute of states that begin as zeros.
#pragma once

#include "ir/graph.hpp"

namespace carina::compiler {

/// Removes operations of an npu graph whose result is known because a constant operand is zero throughout: a
/// convolution without bias and a product give zeros, a sum gives its other operand. Nothing that is kept
/// instead takes more memory than the constants that go.
void foldZeros(ir::Graph& graph);

}  // namespace carina::compiler
