// SPDX-License-Identifier: Apache-2.0
// Integer program inputs and outputs instead of float ones.
#pragma once

#include "ir/graph.hpp"

namespace carina::pipeline {

/// Removes the quantize nodes on float graph inputs and the dequantize nodes in front of float graph outputs: the integer
/// tensors become inputs and outputs, with their scale and zero point as the value's quantization. Fails where an input is
/// also used in float, or an output is not the result of a dequantize.
Status exposeIntegers(ir::Graph& graph);

}  // namespace carina::pipeline
