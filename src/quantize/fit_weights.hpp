// SPDX-License-Identifier: Apache-2.0
// Rounding weights so that layers keep their results, not each weight its value: of one output channel the
// error is e . x for the rounding errors e and the inputs x, and its mean square e C e^T for the inputs'
// covariance C.
// Weights are rounded one after the other, each also taking back what the errors before it have
// moved along with the inputs that it shares its meaning with (LDLQ, Chee et al. 2023; the same result as
// GPTQ, Frantar et al. 2022). The mean is left to bias correction.
#pragma once

#include "quantize/annotate.hpp"
#include "quantize/layer_inputs.hpp"
#include "quantize/quantize.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {

/// Weights rounded to nearest. `params` are per group of the annotation.
LayerCodes roundWeights(const ir::Graph& graph, const Annotation& annotation, const Assignment& assignment,
                        const std::vector<QParams>& params);

/// Rounds again, at the same scales, by the covariances of `inputs`. Layers stay as they are where it has
/// none: the samples say too little (fewer rows than would tell), or the weight is that of a transposed
/// convolution. Layers of one weight and scale keep one set of codes.
void fitWeights(const LayerInputs& inputs, bool meansAreCorrected, LayerCodes& codes);

}  // namespace carina::quantize
