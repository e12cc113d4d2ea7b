// SPDX-License-Identifier: Apache-2.0
// What belongs together in the float network, its simulation and the program.
#pragma once

#include "ir/graph.hpp"
#include "quantize/quantize.hpp"

namespace carina::pipeline {

/// The value of the float network that a dequantized value of the simulation stands for: the input of the
/// quantize in front of it. Null for other values.
const ir::Value* quantizedSource(const ir::Value& value);

/// The sample as the program takes it: float samples of integer inputs are quantized by the input's
/// parameters.
quantize::Sample programSample(const ir::Graph& graph, const quantize::Sample& sample);

}  // namespace carina::pipeline
