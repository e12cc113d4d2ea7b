// SPDX-License-Identifier: Apache-2.0
// Correspondence between the float network, its simulation and the program.
#pragma once

#include "ir/graph.hpp"
#include "quantize/quantize.hpp"

namespace carina::pipeline {

/// The value of the float network that a dequantized value of the simulation represents: the input of the
/// preceding quantize. Null for other values.
const ir::Value* quantizedSource(const ir::Value& value);

/// The sample as the program expects it: float samples of integer inputs are quantized with the input's
/// parameters.
quantize::Sample programSample(const ir::Graph& graph, const quantize::Sample& sample);

}  // namespace carina::pipeline
