// SPDX-License-Identifier: Apache-2.0
// The source coordinates that an output element of a resize or of a grid sampler reads, and their weights:
// shared by the executor and by lowering, so that both read the same elements. Computed in float32 like in
// PyTorch.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::aten {

/// A source coordinate along one dimension and its weight.
struct Tap {
  int64_t at = 0;
  float weight = 1;
};
/// The taps of one output coordinate along one dimension. A source coordinate may occur twice, at edges.
using Taps = std::vector<Tap>;

/// Taps per spatial dimension and output coordinate. For every aten.upsample_*.vec,
/// _upsample_nearest_exact*.vec and _upsample_*_aa.vec. Fails on empty tensors and on inconsistent sizes.
Result<std::vector<std::vector<Taps>>> resizeTaps(const ir::Node& node);

/// Parameters of grid samplers: interpolation 0 linear, 1 nearest, 2 cubic (planes only); padding 0 zeros, 1
/// border, 2 reflection.
struct GridSampling {
  int64_t interpolation = 0, padding = 0;
  bool alignCorners = false;

  /// The taps of coordinate `g` of a grid, in [-1, 1] within the tensor, along a dimension of `size`
  /// elements. Empty if only padding zeros contribute.
  Taps taps(float g, int64_t size) const;
};
/// For aten.grid_sampler, grid_sampler_2d and grid_sampler_3d. Fails on unknown modes.
Result<GridSampling> gridSampling(const ir::Node& node);

/// The base grid that aten.affine_grid_generator transforms: for each position (row-major) of a plane or
/// volume x, y, [z,] 1, with coordinates in [-1, 1].
std::vector<float> affineBase(const Shape& spatial, bool alignCorners);

}  // namespace carina::aten
