// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_set>

#include "ir/graph.hpp"

namespace carina::quantize {

/// The float values that are integers whatever the network's inputs are: results of roundings and of
/// conversions from integers, and what sums, products, extremes and moves make of them (row * width +
/// column).
std::unordered_set<const ir::Value*> wholeValues(const ir::Graph& graph);

}  // namespace carina::quantize
