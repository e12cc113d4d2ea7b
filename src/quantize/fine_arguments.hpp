// SPDX-License-Identifier: Apache-2.0
// Arguments for which 8-bit codes are too far apart: of sin and cos over many periods (positions, time
// steps), where the sine of a code says nothing about the sine of the value, of conversions to integers
// (indices), which codes more than one apart do not represent, and of positions between elements, whose
// fractions are weights.
#pragma once

#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/observer.hpp"

namespace carina::quantize {

/// The operators that need 16-bit codes: sines whose arguments differ by more than 0.05 for neighbouring int8
/// codes, conversions whose arguments differ by more than 1, roundings to indices whose arguments differ by
/// more than 1/128, and the operators that compute the arguments,
/// back to layers, sums and conversions. Without operators that rules name.
std::vector<const ir::Node*> operatorsOfFineArguments(const ir::Graph& graph, const Assignment& assignment,
                                                      const Annotation& annotation,
                                                      const std::vector<Range>& ranges);

}  // namespace carina::quantize
