// SPDX-License-Identifier: Apache-2.0
// Normalizes pixels to the images that a network expects, inside the network.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::pipeline {

/// x = pixel * scale + shift, per channel (dimension 1 of four), or one pair for all elements.
struct PixelScaling {
  std::vector<double> scale, shift;
  bool uniform() const { return scale.size() == 1; }
};

/// `pixels`: float32; its users expect normalized values. For convolutions and linear layers the scaling is
/// folded into weights and biases: y = sum w x + b = sum (w scale) pixel + (b + sum w shift). That is exact
/// except for padding: a convolution pads with 0, which as a pixel stands for `shift`, so a padding
/// convolution is folded only if every shift is 0. All other users get the result of an operation: a
/// multiplication and an addition (one TABLE on the NPU), or, if channels differ, a depthwise convolution
/// with one tap, whose weights are the codes +-127.
void normalisePixels(ir::Graph& graph, ir::Value* pixels, const PixelScaling& scaling);

}  // namespace carina::pipeline
