// SPDX-License-Identifier: Apache-2.0
// Operators of a quantized network that, as quantized, have no integer form.
#pragma once

#include "partition/units.hpp"

namespace carina::partition {

/// Whether quantize and dequantize nodes enclose the unit: no float value enters or leaves it.
bool isClosed(const Unit& unit);

/// The closed units of the graph that cannot be lowered. Dequantize nodes must have one use each
/// (separateDequantizes()).
std::vector<Unit> unloweredUnits(const ir::Graph& graph);

}  // namespace carina::partition
