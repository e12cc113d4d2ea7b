// SPDX-License-Identifier: Apache-2.0
// Python numbers that exist only at run time: items of tensors, and what is computed from them for the
// predicate of torch.cond. In the graph they are zero-dimensional tensors.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "pt2/build_node.hpp"

namespace carina::pt2 {

/// Whether the node computes a number, from one or two others or from a tensor, in a way that the graph can
/// express: item(), and arithmetic, comparisons and logic on integers and Booleans.
bool givesNumber(std::string_view target);

/// Names of the numbers of a graph that determine control flow: predicates, and what these are computed from.
std::unordered_set<std::string> decidingNumbers(const GraphDocument& graph);

/// Appends the node that computes the number and defines it in the scope. Integers are int64, which agrees
/// with Python up to 64 bits.
Status buildNumber(const NodeDocument& node, Scope& scope);

}  // namespace carina::pt2
