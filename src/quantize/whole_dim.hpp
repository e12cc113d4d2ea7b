// SPDX-License-Identifier: Apache-2.0
// Dimensions that views, permutations and slices leave intact.
#pragma once

#include <cstdint>
#include <optional>

#include "aten/movement.hpp"

namespace carina::quantize {

/// For a node with one result that only moves elements of one operand: the operand's dimension that is
/// dimension `dim` of the result, if no element moves along it.
struct WholeDim {
  size_t operand = 0;  // flat index
  int64_t dim = 0;     // of the operand
};
std::optional<WholeDim> wholeDimBefore(const ir::Node& node, int64_t dim);

}  // namespace carina::quantize
