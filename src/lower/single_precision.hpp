// SPDX-License-Identifier: Apache-2.0
// Networks in half, bfloat16 or double precision become networks in float32.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::lower {

/// A network is in a float type when one of its inputs or weights is; half and bfloat16 in between count as
/// well. Everything of these types becomes
/// float32: inputs, constants, intermediate values, and what converts to them. Returns the types; none where
/// the network is in float32 already.
std::vector<DType> toSinglePrecision(ir::Graph& graph);

}  // namespace carina::lower
