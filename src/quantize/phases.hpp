// SPDX-License-Identifier: Apache-2.0
// Arguments of sin and cos that span many periods (positions, time steps): 8-bit codes of them are too far
// apart for the sine of a code to say anything about the sine of the value.
#pragma once

#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/observer.hpp"

namespace carina::quantize {

/// The operators that need 16-bit codes because neighbouring int8 codes of the argument of a sine differ by
/// more than 0.05: the sine, and the operators that compute its argument, back to layers, sums and
/// conversions. Without operators that rules name.
std::vector<const ir::Node*> operatorsOfPhases(const ir::Graph& graph, const Assignment& assignment,
                                               const Annotation& annotation,
                                               const std::vector<Range>& ranges);

}  // namespace carina::quantize
