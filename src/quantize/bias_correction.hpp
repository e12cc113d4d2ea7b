// SPDX-License-Identifier: Apache-2.0
// Bias correction (Nagel et al. 2019, section 4.2, with measured instead of assumed inputs).
#pragma once

#include "quantize/annotate.hpp"
#include "quantize/quantize.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {

/// Rounding weights moves the mean of every output channel by E[op(x, W_q - W)], x being the operator's input
/// in the float network. The samples tell how far; that much is taken off the bias (an operator without one
/// gets one), less where samples disagree about it. `codes` are the weights as they were rounded.
Status correctBiases(ir::Graph& graph, const LayerCodes& codes, std::span<const Sample> samples);

}  // namespace carina::quantize
