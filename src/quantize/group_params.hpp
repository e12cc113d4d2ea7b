// SPDX-License-Identifier: Apache-2.0
// Scales and zero points of an annotation's groups from their ranges.
#pragma once

#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/observer.hpp"
#include "quantize/qparams.hpp"

namespace carina::quantize {

/// One per group. A group whose codes the network brings has their scale; others are computed from their
/// range (see activationParams), then adapted: scales of 16-bit products to what 48-bit sums can be rescaled
/// by, values that are only scaled to the codes of what they are made of, inputs of asin, acos and atanh to
/// the domain of these.
std::vector<QParams> groupParams(const ir::Graph& graph, const Annotation& annotation,
                                 const std::vector<Range>& ranges);

/// Wide codes are plenty: their ranges reach half as far again, to values that no sample shows.
void giveWideCodesRoom(const Annotation& annotation, std::vector<Range>& ranges);

}  // namespace carina::quantize
