// SPDX-License-Identifier: Apache-2.0
// Codes across the borders of torch.cond and torch.while_loop, for NPUs with branches: inputs and results of
// regions have the codes of the surrounding network, so that no value between NPU operations is float.
#pragma once

#include "quantize/regions.hpp"

namespace carina::quantize {

/// Turns the float operands and results of the conditionals and loops of the graph (not of its regions) into
/// codes, if samples reached them. A value has one set of codes on all paths: the codes on which its
/// producers and readers agree, or else codes for the range observed on all paths (`wide`: 16 bits), with one
/// more rounding. Regions read their inputs through dequantize nodes and return results of quantize nodes.
void carryCodesIntoRegions(ir::Graph& graph, const BorderRanges& ranges, bool wide);

}  // namespace carina::quantize
