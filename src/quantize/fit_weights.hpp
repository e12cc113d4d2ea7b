// SPDX-License-Identifier: Apache-2.0
// Rounding weights so that layers keep their results, not each weight its value: of one output channel the
// error is e . x for the rounding errors e and the inputs x, and its mean square e C e^T for the inputs'
// covariance C.
// Weights are rounded one after the other, each also taking back what the errors before it have
// moved along with the inputs that it shares its meaning with (LDLQ, Chee et al. 2023; the same result as
// GPTQ, Frantar et al. 2022). The mean is left to bias correction.
#pragma once

#include "quantize/annotate.hpp"
#include "quantize/quantize.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {

/// Weights rounded to nearest. `params` are per group of the annotation.
LayerCodes roundWeights(const ir::Graph& graph, const Annotation& annotation, const Assignment& assignment,
                        const std::vector<QParams>& params);

/// Rounds again, at the same scales, by what the samples show as inputs in the float network. Layers stay as
/// they are where the samples say too little (fewer rows of inputs than would tell the covariance) and where
/// a weight is that of a transposed convolution.
Status fitWeights(const ir::Graph& graph, std::span<const Sample> samples, bool meansAreCorrected,
                  LayerCodes& codes);

}  // namespace carina::quantize
