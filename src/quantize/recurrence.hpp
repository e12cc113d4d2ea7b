// SPDX-License-Identifier: Apache-2.0
// Successive steps of unrolled recurrences in a graph.
#pragma once

#include <utility>
#include <vector>

#include "ir/graph.hpp"

namespace carina::quantize {

/// Pairs of corresponding values in two successive steps. A step begins where a layer is applied again to a
/// value that depends on its own result: its inputs, its results, and what the same operators compute from
/// the results in both steps are paired; so are the results of a layer applied to several slices of one
/// value. With the same scales in all steps, one weight stream and one table serve all of them.
std::vector<std::pair<const ir::Value*, const ir::Value*>> successiveValues(const ir::Graph& graph);

}  // namespace carina::quantize
