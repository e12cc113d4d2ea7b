// SPDX-License-Identifier: Apache-2.0
// Signs that calibration samples differ from what the network will see.
#pragma once

#include <span>
#include <vector>

#include "quantize/quantize.hpp"

namespace carina::quantize {

/// Warnings about float inputs: samples that have one value everywhere, samples unlike those that the first
/// batch norm was trained on (ten times as far from its mean), and samples of whole numbers between 0 and 255
/// (images without preprocessing) if the network's example input is of another kind. `examples`: one per
/// input, of the inputs' types; may be shorter, empty tensors stand for none. Each warning's place is the
/// input.
std::vector<Diagnostic> sampleWarnings(const ir::Graph& graph, std::span<const Sample> samples,
                                       std::span<const Tensor> examples);

}  // namespace carina::quantize
