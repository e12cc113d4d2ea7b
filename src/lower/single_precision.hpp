// SPDX-License-Identifier: Apache-2.0
// Converts networks in half, bfloat16 or double precision to float32.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::lower {

/// A network is in a float type if one of its inputs or weights is; intermediate values count as well, except
/// double ones that do not depend on an input. Everything of these types becomes float32: inputs, constants,
/// intermediate values, and conversions to them. Returns the types; none if the network is already in
/// float32.
std::vector<DType> toSinglePrecision(ir::Graph& graph);

}  // namespace carina::lower
