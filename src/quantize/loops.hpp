// SPDX-License-Identifier: Apache-2.0
// Loops over slices (higher_order.scan) in the quantizer: their bodies belong to the enclosing network. A
// carried value has one range before, between and after all iterations; slices have the range of the whole.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::quantize {

/// The nodes of the graph in order; those of a loop's body follow the loop.
std::vector<ir::Node*> nodesWithLoops(const ir::Graph& graph);

/// The graph of a value's producer or first user; `outer` if it has neither.
ir::Graph& graphOf(const ir::Value& value, ir::Graph& outer);

/// Values with the same codes on both sides of a loop's border cross it as codes: inputs that the body only
/// quantizes are quantized before the loop, and results that the body dequantizes last are dequantized after
/// it. Others stay float.
void carryCodes(ir::Graph& graph);

/// Unrolls the loops that request it.
Status unrollLoops(ir::Graph& graph);
/// Unrolls all loops over slices.
Status unrollAllLoops(ir::Graph& graph);

}  // namespace carina::quantize
