// SPDX-License-Identifier: Apache-2.0
// Integer program inputs and outputs instead of float ones.
#pragma once

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// For the caller's inputs and outputs (followed by `states` state inputs and outputs): removes the quantize
/// nodes after float graph inputs, and the dequantize nodes before float graph outputs, where the requested
/// type is not Float. The integer tensors become inputs and outputs, with their scale and zero point as the
/// value's quantization. A uint8 input has the codes of int8 plus 128, and a dequantize node follows it. A
/// constant output becomes codes over its own range.
/// Fails if an input is also used in float, an output is not the result of a dequantize, or the network is
/// quantized to another type there.
Status exposeIntegers(ir::Graph& graph, const PortTypes& inputs, const PortTypes& outputs, size_t states);

/// The same for state that is read and written in the same codes: it is kept as integers. Other state is
/// unchanged.
void exposeIntegerState(ir::Graph& graph, size_t states);

/// The codes in which the graph reads, writes, or reads and writes variable `index` of its state; nullopt if
/// there are none, or they differ.
std::optional<quantize::QParams> stateCodes(const ir::Graph& graph, size_t states, size_t index);
/// Keeps a float variable in these codes, as other methods of the program do; readers and writers that use
/// others get a conversion. Returns whether a conversion was necessary.
bool keepStateAs(ir::Graph& graph, size_t states, size_t index, const quantize::QParams& codes);

/// A tensor as an input of a graph expects it: real values for a quantized input become its codes.
Tensor asInput(const Tensor& tensor, const ir::Value& input);

}  // namespace carina::pipeline
