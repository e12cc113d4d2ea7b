// SPDX-License-Identifier: Apache-2.0
// Sizes of windowed operators (convolution, pooling, resizing), shared by type inference, kernels and
// lowering.
#pragma once

#include "ir/graph.hpp"

namespace carina::aten {

/// A convolution over 1 to 3 spatial dimensions as specified in the graph, with lists expanded to one entry
/// per dimension.
struct ConvGeometry {
  size_t spatial = 2;
  bool transposed = false;
  bool batched = true;  // false: the input has no batch dimension
  int64_t groups = 1;
  ir::Ints stride, dilation;
  ir::Ints padBefore, padAfter;  // differs from padBefore only with padding="same"
  ir::Ints outputPadding;
  ir::Ints kernel;
  int64_t inChannels = 0, outChannels = 0;
  Shape output;  // full result shape
};
/// For every aten.conv*, conv_transpose* and convolution overload. Fails on inconsistent sizes.
Result<ConvGeometry> convGeometry(const ir::Node& node);

struct PoolGeometry {
  size_t spatial = 2;
  ir::Ints kernel, stride, padding, dilation;
  bool ceilMode = false;
  bool countIncludePad = true;
  std::optional<int64_t> divisor;
  Shape output;

  /// Whether an average uses the same divisor for every window of an input of this shape.
  bool hasOneDivisor(const Shape& input) const;
};
/// For aten.max_pool*, max_pool*_with_indices and avg_pool*.
Result<PoolGeometry> poolGeometry(const ir::Node& node);

/// Output shape of a resize by output_size or scale_factors (upsample_*.vec), and per dimension the ratio of
/// source to destination coordinates that torch computes (0 for a single output element with aligned
/// corners).
struct ResizeGeometry {
  size_t spatial = 2;
  bool alignCorners = false;
  Shape output;
  std::vector<float> scale;
};
Result<ResizeGeometry> resizeGeometry(const ir::Node& node);

/// im2col and col2im: images [N, C, H, W] and their windows as columns [N, C * kh * kw, positions]; N is 1 if
/// the operand has no batch dimension.
struct WindowGeometry {
  bool batched = true;
  ir::Ints kernel, dilation, padding, stride, positions;
  Shape image, columns;
};
Result<WindowGeometry> windowGeometry(const ir::Node& node);

}  // namespace carina::aten
