// SPDX-License-Identifier: Apache-2.0
// Signs that calibration samples are not what the network will see.
#pragma once

#include <span>
#include <vector>

#include "quantize/quantize.hpp"

namespace carina::quantize {

/// Warnings about float inputs: samples that are one value everywhere, samples that the first batch norm was
/// not trained with (ten times as far from its mean), and samples of whole numbers between 0 and 255 (images
/// without their preprocessing) where the network's example input is of another kind.
/// `examples`: by input, of the inputs' types; may be shorter, empty tensors stand for none. The place of
/// each is the input.
std::vector<Diagnostic> doubtsAbout(const ir::Graph& graph, std::span<const Sample> samples,
                                    std::span<const Tensor> examples);

}  // namespace carina::quantize
