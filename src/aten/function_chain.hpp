// SPDX-License-Identifier: Apache-2.0
// Chains of operators of which each maps the elements of one tensor, one by one.
#pragma once

#include <span>

#include "base/result.hpp"
#include "ir/graph.hpp"

namespace carina::aten {

/// Whether it computes floats from the floats of its first operand, its only tensor, and has a TOSA form.
bool mapsOneTensor(const ir::Node& node);

/// A graph that applies copies of the nodes, one after the other, to an input of this type.
Result<ir::Graph> graphOfChain(std::span<const ir::Node* const> chain, const ir::Type& input);

}  // namespace carina::aten
