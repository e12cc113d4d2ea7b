// SPDX-License-Identifier: Apache-2.0
// Python numbers that exist only while the program runs: items of tensors and what is computed from them for
// the predicate of torch.cond. In the graph they are tensors without dimensions.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "pt2/build_node.hpp"

namespace carina::pt2 {

/// Whether the node gives a number, of one or two others or of a tensor, in a way that the graph can express:
/// item() and arithmetic, comparisons and logic of integers and truth values.
bool givesNumber(std::string_view target);

/// Names of the numbers of a graph that decide something: predicates, and what these are computed from.
std::unordered_set<std::string> decidingNumbers(const GraphDocument& graph);

/// Appends what computes the number and defines it in the scope. Integers are int64, as in Python up to 64
/// bits.
Status buildNumber(const NodeDocument& node, Scope& scope);

}  // namespace carina::pt2
