// SPDX-License-Identifier: Apache-2.0
// What a layer multiplies its weights by: a matrix with one row per output position and one column per input
// channel and tap of the kernel. Convolutions in one, two and three dimensions and linear layers (one tap).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "quantize/annotate.hpp"

namespace carina::quantize {

struct LayerGeometry {
  int64_t groups = 1;
  int64_t channels = 1, outputs = 1;           // of a group
  int64_t taps = 1;                            // of the kernel
  int64_t images = 1, positions = 1;           // positions: output positions, of all images
  std::vector<int64_t> input, output, kernel;  // spatial, outermost first; a linear layer has none
  ir::Ints stride, dilation, pad;              // of a transposed layer pad is what is cut off
  bool transposed = false;

  /// Of a group; a weight has them in this order, channel by channel.
  int64_t columns() const { return channels * taps; }
};

LayerGeometry geometryOf(const WeightedOp& op);

/// Where the inputs of one output position begin.
struct Origin {
  int64_t image = 0;            // first element
  std::array<int64_t, 3> at{};  // spatial, of the first tap; may lie in the padding
};

/// Those of some positions. Not of transposed layers.
std::vector<Origin> originsOf(const LayerGeometry& g, const std::vector<int64_t>& positions);

/// Where a tap's input lies for each origin, in channel 0; -1 in the padding.
struct TapOffsets {
  enum class Kind : uint8_t { Run, Inside, Any };  // one behind the other; none in the padding
  std::vector<int64_t> at;
  Kind kind = Kind::Any;
};
TapOffsets offsetsOf(const LayerGeometry& g, const std::vector<Origin>& origins, int64_t tap);

/// The inputs of one tap of a channel (counted over all groups), one per offset; zeros from the padding.
void gatherColumn(const LayerGeometry& g, std::span<const float> input, int64_t channel,
                  const TapOffsets& offsets, float* out);

/// The mean of each column over all output positions, group by group. Of a transposed layer, whose taps give
/// something to some positions only, over all positions as well.
std::vector<float> columnMeans(const LayerGeometry& g, std::span<const float> input);

}  // namespace carina::quantize
