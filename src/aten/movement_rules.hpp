// SPDX-License-Identifier: Apache-2.0
// Parts of movement.cpp that other files of this module also use.
#pragma once

#include "aten/movement.hpp"

namespace carina::aten {

Movement identityMovement(const Shape& shape, size_t operand = 0);

/// A range of one dimension with the semantics of slice.Tensor.
struct SliceRange {
  int64_t start = 0, step = 1, length = 0;
};
SliceRange sliceRange(int64_t size, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step);

/// slice.Tensor, select.int and narrow; also slice_scatter and select_scatter, as the region of self that is
/// replaced.
Result<Movement> cut(const ir::Node& node);
/// split*, chunk, tensor_split and unbind.
Result<std::vector<Movement>> pieces(const ir::Node& node);

}  // namespace carina::aten
