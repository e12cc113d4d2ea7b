// SPDX-License-Identifier: Apache-2.0
// Tensors without elements: PyTorch takes them nearly everywhere, an NPU nowhere. They are settled here, so
// that nothing behind has to think of a size of 0.
#pragma once

#include "ir/graph.hpp"

namespace carina::decompose {

/// Takes every tensor with a size of 0 out of a functional graph: what computes one is not needed (it has no
/// contents), concatenations lose such parts, and sums and products of nothing become their constants.
/// Afterwards no node has an operand or a result without elements. Errors: a program input or output without
/// elements, and operators whose result would depend on one in any other way; each with its place.
Status removeEmptyTensors(ir::Graph& graph);

}  // namespace carina::decompose
