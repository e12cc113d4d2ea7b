// SPDX-License-Identifier: Apache-2.0
// Which source coordinates an output element of a resize or of a grid sampler reads, and with which weights:
// shared by the executor and by lowering, so that both read the same elements. Computed in float32 as PyTorch
// does.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::aten {

/// A source coordinate along one dimension and its share.
struct Tap {
  int64_t at = 0;
  float weight = 1;
};
/// What one output coordinate is made of along one dimension. A coordinate may come twice, at edges.
using Taps = std::vector<Tap>;

/// Per spatial dimension, per output coordinate. For every aten.upsample_*.vec, _upsample_nearest_exact*.vec
/// and _upsample_*_aa.vec. Fails on empty tensors and on sizes that do not fit.
Result<std::vector<std::vector<Taps>>> resizeTaps(const ir::Node& node);

/// What grid samplers say: interpolation 0 linear, 1 nearest, 2 cubic (of planes only); padding 0 zeros, 1
/// border, 2 reflection.
struct GridSampling {
  int64_t interpolation = 0, padding = 0;
  bool alignCorners = false;

  /// The taps of coordinate `g` of a grid, in [-1, 1] within the tensor, along a dimension of `size`
  /// elements. None where the position sees nothing but zeros.
  Taps taps(float g, int64_t size) const;
};
/// For aten.grid_sampler, grid_sampler_2d and grid_sampler_3d. Fails on modes that do not exist.
Result<GridSampling> gridSampling(const ir::Node& node);

/// The grid that aten.affine_grid_generator maps: per position (row-major) of a plane or volume x, y, [z,] 1
/// in [-1, 1].
std::vector<float> affineBase(const Shape& spatial, bool alignCorners);

}  // namespace carina::aten
