// SPDX-License-Identifier: Apache-2.0
// Normalised images made of pixels inside of the network.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::pipeline {

/// x = pixel * scale + shift: for each channel (dimension 1 of four), or one pair for all elements.
struct PixelScaling {
  std::vector<double> scale, shift;
  bool uniform() const { return scale.size() == 1; }
};

/// `pixels`: float32, and whoever reads it expects normalised numbers. Convolutions and linear layers get
/// them in their weights and biases: y = sum w x + b = sum (w scale) pixel + (b + sum w shift). That is exact
/// but for one thing: what a convolution pads is 0, which as a pixel stands for `shift`, so one that pads
/// takes pixels only where every shift is 0. All other readers get the result of an operation: of
/// multiplication and addition (one TABLE on the NPU), or, where channels differ, of a depthwise convolution
/// with one tap, whose weights are the codes +-127.
void normalisePixels(ir::Graph& graph, ir::Value* pixels, const PixelScaling& scaling);

}  // namespace carina::pipeline
