// SPDX-License-Identifier: Apache-2.0
// Loops over slices (higher_order.scan) in the quantizer: their bodies belong to the network around them. A
// carried value has one range before, between and after all turns, slices have that of the whole.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::quantize {

/// The nodes of the graph in order, those of a loop's body behind the loop.
std::vector<ir::Node*> nodesWithLoops(const ir::Graph& graph);

/// The graph that a value belongs to, where anything uses or makes it; otherwise `outer`.
ir::Graph& graphOf(const ir::Value& value, ir::Graph& outer);

/// Values with the same codes on both sides of a loop's border become codes there: what is quantized at once
/// in the body is quantized in front of the loop, what the body dequantizes last is dequantized behind it.
/// Others stay real numbers.
void carryCodes(ir::Graph& graph);

/// Puts the turns of the loops that ask for it one behind the other.
Status unrollLoops(ir::Graph& graph);
/// The same for all loops over slices.
Status unrollAllLoops(ir::Graph& graph);

}  // namespace carina::quantize
