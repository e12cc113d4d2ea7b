// SPDX-License-Identifier: Apache-2.0
// From an integer TOSA graph to a network of Ethos-N operations.
#pragma once

#include <unordered_map>

#include "base/result.hpp"
#include "ethosn/compiler/network.hpp"
#include "ir/graph.hpp"

namespace carina::ethosn {

/// The unit of an Ethos-N is an operation together with its requantization, so patterns are matched: a
/// convolution and its RESCALE, an addition between RESCALEs. Scales of tensors are ratios: the RESCALE's
/// multiplier stands in the scale of the weights, or of the input as the operation sees it. Inputs and
/// outputs keep their order and, of shapes with fewer than four dimensions, get leading ones.
///
/// Operations are named as sourceName() names the TOSA node. `tensors`, when given, gets the tensor of each
/// value that has one.
///
/// Errors, all of them together: what has no counterpart, by node, with the reason.
Result<Network> networkOfTosa(const ir::Graph& graph,
                              std::unordered_map<const ir::Value*, int32_t>* tensors = nullptr);

/// The place that messages about a node name: in the user's network where that is known.
std::string sourceName(const ir::Node& node);

}  // namespace carina::ethosn
