// SPDX-License-Identifier: Apache-2.0
// Operators of a quantized network that have no integer form as its quantizer left them.
#pragma once

#include "partition/units.hpp"

namespace carina::partition {

/// Whether quantize and dequantize nodes surround the unit on all sides: no float value enters or leaves it.
bool isClosed(const Unit& unit);

/// The closed units of the graph that do not lower. Dequantize nodes have one use each
/// (separateDequantizes()).
std::vector<Unit> unloweredUnits(const ir::Graph& graph);

}  // namespace carina::partition
