// SPDX-License-Identifier: Apache-2.0
// Scales and zero points of an annotation's groups, computed from their ranges.
#pragma once

#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/observer.hpp"
#include "quantize/qparams.hpp"

namespace carina::quantize {

/// One per group. A group of the network's own codes has their scale; others are computed from their range
/// (see activationParams) and then adapted: scales of 16-bit products to powers of two by which their sums
/// are rescaled, values that are only scaled to the codes of their operand, inputs of asin, acos and atanh to
/// the domain of the function.
std::vector<QParams> groupParams(const ir::Graph& graph, const Annotation& annotation,
                                 const std::vector<Range>& ranges);

/// Wide codes are plentiful: extends their ranges by half to allow for values that no sample contains.
void giveWideCodesRoom(const Annotation& annotation, std::vector<Range>& ranges);

}  // namespace carina::quantize
