// SPDX-License-Identifier: Apache-2.0
// The matrix by which a layer multiplies its weights: one row per output position, and one column per input
// channel and kernel tap. Covers 1-D, 2-D and 3-D convolutions and linear layers (one tap).
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
  int64_t images = 1, positions = 1;           // positions: output positions, over all images
  std::vector<int64_t> input, output, kernel;  // spatial, outermost first; a linear layer has none
  ir::Ints stride, dilation, pad;              // pad of a transposed layer: what is cropped
  bool transposed = false;

  /// Per group; the weight stores them in this order, channel by channel.
  int64_t columns() const { return channels * taps; }
};

LayerGeometry geometryOf(const WeightedOp& op);

/// Where the input window of one output position begins.
struct Origin {
  int64_t image = 0;            // first element
  std::array<int64_t, 3> at{};  // spatial, of the first tap; may be in the padding
};

/// The origins of the given positions. Not for transposed layers.
std::vector<Origin> originsOf(const LayerGeometry& g, const std::vector<int64_t>& positions);

/// The offset of a tap's input for each origin, in channel 0; -1 in the padding.
struct TapOffsets {
  enum class Kind : uint8_t { Run, Inside, Any };  // Run: consecutive; Inside: none in the padding
  std::vector<int64_t> at;
  Kind kind = Kind::Any;
};
TapOffsets offsetsOf(const LayerGeometry& g, const std::vector<Origin>& origins, int64_t tap);

/// Gathers the inputs of one tap of a channel (counted over all groups), one per offset; zeros for padding.
void gatherColumn(const LayerGeometry& g, std::span<const float> input, int64_t channel,
                  const TapOffsets& offsets, float* out);

/// The mean of each column over all output positions, group by group. This includes transposed layers, whose
/// taps contribute to some positions only.
std::vector<float> columnMeans(const LayerGeometry& g, std::span<const float> input);

}  // namespace carina::quantize
