// SPDX-License-Identifier: Apache-2.0
// Positions given by the attributes and constant operands of tfl operators: used by the checks and by the
// code that computes the operators.
#pragma once

#include <vector>

#include "tfl/ops.hpp"

namespace carina::tfl {

/// The elements of a constant integer operand, in order. Fails if it is computed at run time or has other
/// elements.
Result<ir::Ints> constantInts(const ir::Value* value, std::string_view what);

/// Maps dimension numbers, negative ones counted from the end, to [0, rank). Fails if one is out of range.
Result<ir::Ints> axesOf(const ir::Ints& axes, int64_t rank);
Result<int64_t> axisOf(int64_t axis, int64_t rank);

/// One spatial dimension of a sliding window.
struct WindowAxis {
  int64_t outputs = 0;
  int64_t before = 0,
          after = 0;  // rows of padding that windows read; `after` may be negative: rows that none reads
};
/// SAME: ceil(size / stride) positions, the padding they need split with the larger half at the end. VALID:
/// whole windows. `kernel`, `stride` and `dilation` positive. Fails if there is no position, or on sizes
/// beyond 32 bits.
Result<WindowAxis> windowAxis(Padding padding, int64_t size, int64_t kernel, int64_t stride,
                              int64_t dilation);

/// Elements start, start + step, ... of a dimension; step may be negative.
struct Range {
  int64_t start = 0, count = 0, step = 1;
};
/// The elements that STRIDED_SLICE reads along each input dimension, and the final shape of the result.
struct StridedRanges {
  std::vector<Range> ranges;
  Shape shape;
};
Result<StridedRanges> stridedRanges(const StridedSlice& op);

/// [before, after] per dimension of a [rank, 2] operand, all >= 0 and below 2^31.
Result<ir::Ints> paddingsOf(const ir::Value* paddings, const Shape& shape);

/// Sizes of the results of SPLIT_V along the axis, with -1 resolved.
Result<ir::Ints> splitSizes(const SplitV& op);

}  // namespace carina::tfl
