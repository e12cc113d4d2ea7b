// SPDX-License-Identifier: Apache-2.0
// Operands of control flow regions: torch.export lifts weights out of regions, but all stages after the
// reader expect weights where they are used.
#pragma once

#include "ir/graph.hpp"

namespace carina::decompose {

/// For conditionals and the additional operands of loops, in all regions: constants become constants of the
/// regions that use them, unused operands are removed, and duplicates are merged. Values carried by a loop
/// are kept.
Status closeRegions(ir::Graph& graph);

}  // namespace carina::decompose
