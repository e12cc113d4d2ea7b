// SPDX-License-Identifier: Apache-2.0
// From an integer TOSA graph to a network of Ethos-N operations.
#pragma once

#include "base/result.hpp"
#include "ethosn/compiler/network.hpp"
#include "ir/graph.hpp"

namespace carina::ethosn {

/// The unit of an Ethos-N is an operation together with its requantization, so patterns are matched: a
/// convolution and its RESCALE, an addition between RESCALEs. Scales of tensors are ratios: the RESCALE's
/// multiplier stands in the scale of the weights, or of the input as the operation sees it. Inputs and
/// outputs keep their order and, of shapes with fewer than four dimensions, get leading ones.
///
/// Errors, all of them together: what has no counterpart, by node, with the reason.
Result<Network> networkOfTosa(const ir::Graph& graph);

}  // namespace carina::ethosn
