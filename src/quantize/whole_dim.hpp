// SPDX-License-Identifier: Apache-2.0
// Dimensions that views, permutations and slices leave as they are.
#pragma once

#include <cstdint>
#include <optional>

#include "aten/movement.hpp"

namespace carina::quantize {

/// Where a node with one result only moves elements of one operand, and moves none along one of its
/// dimensions, which dimension `dim` of the result is.
struct WholeDim {
  size_t operand = 0;  // flat index
  int64_t dim = 0;     // of the operand
};
std::optional<WholeDim> wholeDimBefore(const ir::Node& node, int64_t dim);

}  // namespace carina::quantize
