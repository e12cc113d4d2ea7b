// SPDX-License-Identifier: Apache-2.0
// Codes across the borders of torch.cond and torch.while_loop, for NPUs that branch: what regions take and
// give are the codes of the network around them, so that nothing is float between the NPU and the NPU.
#pragma once

#include "quantize/regions.hpp"

namespace carina::quantize {

/// Every float value that a choice or loop of the graph (not of its regions) takes or gives becomes codes,
/// where samples showed it. A value has one set of codes on all ways: those that all who make and read it
/// agree on, otherwise those of what the samples showed on all ways (`wide`: 16 bits), and one more rounding.
/// Regions read what they take through a dequantize node, and give what a quantize node makes.
void carryCodesIntoRegions(ir::Graph& graph, const BorderRanges& ranges, bool wide);

}  // namespace carina::quantize
