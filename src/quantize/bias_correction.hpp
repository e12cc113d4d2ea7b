// SPDX-License-Identifier: Apache-2.0
// Bias correction (Nagel et al. 2019, section 4.2, with measured instead of assumed inputs).
#pragma once

#include "quantize/layer_inputs.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {

/// Rounding weights moves the mean of every output channel by E[op(x, W_q - W)], x being the operator's input
/// in the float network: the products of the weights' errors and the means of `inputs`. That much is taken
/// off the bias (an operator without one gets one), less where samples disagree about it. `codes` are the
/// weights as they were rounded.
void correctBiases(ir::Graph& graph, const LayerInputs& inputs, const LayerCodes& codes);

}  // namespace carina::quantize
