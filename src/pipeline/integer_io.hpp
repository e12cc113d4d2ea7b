// SPDX-License-Identifier: Apache-2.0
// Integer program inputs and outputs instead of float ones.
#pragma once

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// Of the caller's inputs and outputs (`states` others stand behind them): removes the quantize nodes on
/// float graph inputs, and the dequantize nodes in front of float graph outputs, of the sides that are not to
/// be Float: the integer tensors become inputs and outputs, with their scale and zero point as the value's
/// quantization. A uint8 input has the codes of int8 plus 128, and a dequantize node stays behind it. Fails
/// where an input is also used in float, an output is not the result of a dequantize, or the network is
/// quantized to another type there.
Status exposeIntegers(ir::Graph& graph, const PortTypes& inputs, const PortTypes& outputs, size_t states);

/// The same for state, where what is read and what is written have the same codes: it is kept as integers.
/// Other state stays as it is.
void exposeIntegerState(ir::Graph& graph, size_t states);

/// The codes in which the graph reads, writes, or reads and writes variable `index` of its state; nothing
/// where these are no codes, or not the same.
std::optional<quantize::QParams> stateCodes(const ir::Graph& graph, size_t states, size_t index);
/// Keeps a float variable in these codes, which other methods of the program keep it in: what reads or writes
/// it otherwise gets a conversion. Returns whether that was necessary.
bool keepStateAs(ir::Graph& graph, size_t states, size_t index, const quantize::QParams& codes);

/// A tensor as an input of a graph takes it: numbers for an input that is quantized become its codes.
Tensor asInput(const Tensor& tensor, const ir::Value& input);

}  // namespace carina::pipeline
