// SPDX-License-Identifier: Apache-2.0
// Converts an integer TOSA graph to a network of Ethos-N operations.
#pragma once

#include <unordered_map>

#include "base/result.hpp"
#include "ethosn/compiler/network.hpp"
#include "ir/graph.hpp"

namespace carina::ethosn {

/// An Ethos-N operation includes its requantization, so patterns are matched: a convolution and its RESCALE,
/// an addition between RESCALEs. Scales of tensors are ratios: the RESCALE's multiplier becomes part of the
/// scale of the weights, or of the input as the operation sees it. Inputs and outputs keep their order;
/// shapes with fewer than four dimensions get leading ones.
///
/// Operations are named after the TOSA node, by sourceName(). `tensors`, if not null, receives the tensor of
/// each value that has one.
///
/// Reports all errors together: every node without a counterpart, with the reason.
Result<Network> networkOfTosa(const ir::Graph& graph,
                              std::unordered_map<const ir::Value*, int32_t>* tensors = nullptr);

/// The place that messages about a node give: in the user's network if known.
std::string sourceName(const ir::Node& node);

}  // namespace carina::ethosn
