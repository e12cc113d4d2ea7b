// SPDX-License-Identifier: Apache-2.0
// The parameters of RESIZE for a 2-D resize, and whether it can express the resize.
#pragma once

#include <array>

#include "ir/graph.hpp"

namespace carina::decompose {

/// RESIZE of one dimension: position of output o in the input is (o * denominator + offset) / numerator;
/// nearest resizing reads the closest row, the higher one of a tie.
struct ResizeAxis {
  int64_t numerator = 1, denominator = 1, offset = 0, border = 0;
  bool identity() const { return numerator == 1 && denominator == 1 && offset == 0; }
};

/// Height and width of upsample_nearest2d, _upsample_nearest_exact2d and upsample_bilinear2d (vec).
/// Dimensions of one row and dimensions that keep their size are the identity. Fails if RESIZE would read
/// other rows than PyTorch, or is out of its range (TOSA 2.7.2: numerator <= 2048, denominator < 16 *
/// numerator, -numerator <= offset < 16 * numerator, -16 * numerator <= border < numerator).
Result<std::array<ResizeAxis, 2>> resizeAxes(const ir::Node& node);

}  // namespace carina::decompose
