// SPDX-License-Identifier: Apache-2.0
// Nodes left for the CPU in the form that ExecuTorch's kernels take: linear as addmm, conv2d as convolution,
// silu as sigmoid and mul, and so on.
#pragma once

#include "ir/graph.hpp"

namespace carina::cpu {

/// Rewrites the nodes of the graph itself; what is inside regions (delegates) stays. Float results stay equal
/// up to rounding. What depends on constants only is computed here, dequantized weights too: the program then
/// holds them in float. Operators without a kernel form stay as they are; emitCall() refuses them.
Status toKernelForm(ir::Graph& graph);

}  // namespace carina::cpu
