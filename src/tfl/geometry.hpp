// SPDX-License-Identifier: Apache-2.0
// What the attributes and constant operands of tfl operators say about places: used by the checks and by
// whoever computes the operators.
#pragma once

#include <vector>

#include "tfl/ops.hpp"

namespace carina::tfl {

/// A constant operand of whole numbers, in order. Errors: computed at run time, or other elements.
Result<ir::Ints> constantInts(const ir::Value* value, std::string_view what);

/// Dimension numbers, negative ones counted from the end, as [0, rank). Errors: outside.
Result<ir::Ints> axesOf(const ir::Ints& axes, int64_t rank);
Result<int64_t> axisOf(int64_t axis, int64_t rank);

/// One spatial dimension of a sliding window.
struct WindowAxis {
  int64_t outputs = 0;
  int64_t before = 0,
          after = 0;  // rows of padding that windows see; `after` may be negative: rows nobody sees
};
/// SAME: ceil(size / stride) positions, the padding they need split with the larger half behind. VALID: whole
/// windows. `kernel`, `stride` and `dilation` positive. Errors: no position at all, or sizes beyond 32 bits.
Result<WindowAxis> windowAxis(Padding padding, int64_t size, int64_t kernel, int64_t stride,
                              int64_t dilation);

/// Elements start, start + step, ... of a dimension; step may be negative.
struct Range {
  int64_t start = 0, count = 0, step = 1;
};
/// What STRIDED_SLICE takes of each input dimension, and the shape that the result has in the end.
struct StridedRanges {
  std::vector<Range> ranges;
  Shape shape;
};
Result<StridedRanges> stridedRanges(const StridedSlice& op);

/// [before, after] per dimension of a [rank, 2] operand, all >= 0 and below 2^31.
Result<ir::Ints> paddingsOf(const ir::Value* paddings, const Shape& shape);

/// Sizes along the axis of the results of SPLIT_V, -1 filled in.
Result<ir::Ints> splitSizes(const SplitV& op);

}  // namespace carina::tfl
