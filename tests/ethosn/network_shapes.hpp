// SPDX-License-Identifier: Apache-2.0
// The layers of well-known networks, in order, for any ShapeMaker that can create them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ethosn/support/operation.hpp"

namespace carina::ethosn::test {

struct Extents {
  uint32_t height = 0, width = 0, channels = 0;
};

/// Creates layers and numbers their output feature maps. Every feature map has batch size 1 and layout NHWC.
class ShapeMaker {
 public:
  ShapeMaker() = default;
  ShapeMaker(const ShapeMaker&) = delete;
  ShapeMaker& operator=(const ShapeMaker&) = delete;
  virtual ~ShapeMaker() = default;

  virtual Extents extents(int32_t map) const = 0;
  /// An image with three channels.
  virtual int32_t image(uint32_t size) = 0;
  virtual int32_t convolution(int32_t in, uint32_t height, uint32_t width, uint32_t outputs, uint32_t stride,
                              const Padding& padding) = 0;
  virtual int32_t depthwise(int32_t in, uint32_t size, uint32_t stride, const Padding& padding) = 0;
  /// 3x3, stride 2.
  virtual int32_t maxPool(int32_t in, const Padding& padding) = 0;
  /// 3x3; the output has the height and width of the input.
  virtual int32_t averagePool(int32_t in) = 0;
  virtual int32_t add(int32_t a, int32_t b) = 0;
  /// Concatenates along the channels.
  virtual int32_t concatenation(const std::vector<int32_t>& parts) = 0;
  /// Reshapes to 1 x `count` x the remaining elements.
  virtual int32_t rows(int32_t in, uint32_t count) = 0;
  /// The mean over height and width, then a fully connected layer: an output.
  virtual void classify(int32_t in, uint32_t classes) = 0;
  /// The rows of all parts: an output.
  virtual void detections(const std::vector<int32_t>& parts) = 0;
};

/// "mobilenet_v1", ...
std::vector<std::string_view> knownNetworks();
/// `name` is one of knownNetworks().
void drawNetwork(std::string_view name, ShapeMaker& maker);

}  // namespace carina::ethosn::test
