// SPDX-License-Identifier: Apache-2.0
// Bias correction (Nagel et al. 2019, section 4.2, with measured instead of assumed inputs).
#pragma once

#include "quantize/layer_inputs.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {

/// Rounding weights shifts the mean of every output channel by E[op(x, W_q - W)], where x is the operator's
/// input in the float network: the products of the weight errors and the means of `inputs`. This shift is
/// subtracted from the bias (an operator without one gets one), scaled down where samples disagree about it.
/// `codes` are the rounded weights.
void correctBiases(ir::Graph& graph, const LayerInputs& inputs, const LayerCodes& codes);

}  // namespace carina::quantize
