// SPDX-License-Identifier: Apache-2.0
// Converts nodes left to the CPU to the form that ExecuTorch's kernels accept: linear as addmm, conv2d as
// convolution, silu as sigmoid and mul, and so on.
#pragma once

#include "ir/graph.hpp"

namespace carina::cpu {

/// Rewrites the nodes of the graph itself; regions (delegates) remain unchanged. Float results stay equal up
/// to rounding. What depends on constants only is computed here, including dequantized weights: the program
/// then contains them in float. Operators without a kernel form remain unchanged; emitCall() rejects them.
Status toKernelForm(ir::Graph& graph);

}  // namespace carina::cpu
