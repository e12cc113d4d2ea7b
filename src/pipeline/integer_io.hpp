// SPDX-License-Identifier: Apache-2.0
// Integer program inputs and outputs instead of float ones.
#pragma once

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// Removes the quantize nodes on float graph inputs, and the dequantize nodes in front of float graph
/// outputs, of the sides that are not to be Float: the integer tensors become inputs and outputs, with their
/// scale and zero point as the value's quantization. Fails where an input is also used in float, an output is
/// not the result of a dequantize, or the network is quantized to another type there.
Status exposeIntegers(ir::Graph& graph, ProgramIo inputs, ProgramIo outputs);

}  // namespace carina::pipeline
