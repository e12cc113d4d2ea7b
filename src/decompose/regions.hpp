// SPDX-License-Identifier: Apache-2.0
// What regions of control flow take: torch.export lifts weights out of them, everything behind the reader
// wants weights where they are used.
#pragma once

#include "ir/graph.hpp"

namespace carina::decompose {

/// Operands of conditions and additional operands of loops, in all regions: constants become constants of the
/// regions that use them, what no region uses goes, and what is given twice is taken once. Values that a loop
/// carries stay.
Status closeRegions(ir::Graph& graph);

}  // namespace carina::decompose
