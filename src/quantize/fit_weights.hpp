// SPDX-License-Identifier: Apache-2.0
// Rounds weights to preserve layer results rather than individual weights: the error of one output channel is
// e . x for rounding errors e and inputs x, with mean square e C e^T for the input covariance C. Weights are
// rounded one after another, each also compensating for earlier errors to the extent that its input is
// correlated with theirs (LDLQ, Chee et al. 2023; the same result as GPTQ, Frantar et al. 2022). The mean is
// left to bias correction.
#pragma once

#include "quantize/annotate.hpp"
#include "quantize/layer_inputs.hpp"
#include "quantize/quantize.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {

/// Weights rounded to nearest. `params` are per group of the annotation.
LayerCodes roundWeights(const ir::Graph& graph, const Annotation& annotation, const Assignment& assignment,
                        const std::vector<QParams>& params);

/// Rounds again at the same scales, using the covariances in `inputs`. Layers without covariances are left
/// unchanged: those with too few sample rows, and transposed convolutions. Layers that share a weight and a
/// scale keep one set of codes.
void fitWeights(const LayerInputs& inputs, bool meansAreCorrected, LayerCodes& codes);

}  // namespace carina::quantize
