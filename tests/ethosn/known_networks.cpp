// SPDX-License-Identifier: Apache-2.0
#include "ethosn/known_networks.hpp"

#include "ethosn/network_shapes.hpp"
#include "ethosn/reference.hpp"

namespace carina::ethosn::test {
namespace {

/// Creates layers as Ethos-N operations.
class OperationMaker : public ShapeMaker {
 public:
  Extents extents(int32_t map) const override {
    const Shape& shape = builder_.network().tensors[static_cast<size_t>(map)].shape;
    return {shape[1], shape[2], shape[3]};
  }
  int32_t image(uint32_t size) override { return builder_.input(size, size, 3); }
  int32_t convolution(int32_t in, uint32_t height, uint32_t width, uint32_t outputs, uint32_t stride,
                      const Padding& padding) override {
    return withCommonScale(builder_.convolution(in, height, width, outputs, stride, padding));
  }
  int32_t depthwise(int32_t in, uint32_t size, uint32_t stride, const Padding& padding) override {
    return withCommonScale(builder_.depthwise(in, size, stride, padding));
  }
  int32_t maxPool(int32_t in, const Padding& padding) override {
    return builder_.pooling(in, PoolingType::Max, 3, 2, padding);
  }
  int32_t averagePool(int32_t in) override {
    return builder_.pooling(in, PoolingType::Average, 3, 1, {1, 1, 1, 1});
  }
  int32_t add(int32_t a, int32_t b) override {
    return builder_.binary(Operator::Addition, a, b, kScale, 110);
  }
  int32_t concatenation(const std::vector<int32_t>& parts) override {
    return builder_.concatenation(parts, 3);
  }
  int32_t rows(int32_t in, uint32_t count) override {
    const Extents of = extents(in);
    return builder_.reshape(in, {1, 1, count, of.height * of.width * of.channels / count});
  }
  void classify(int32_t in, uint32_t classes) override {
    const int32_t mean = builder_.unary(Operator::MeanXy, in);
    builder_.output(withCommonScale(builder_.fullyConnected(mean, classes)));
  }
  void detections(const std::vector<int32_t>& parts) override {
    builder_.output(builder_.concatenation(parts, 2, kScale, 120));
  }

  /// Returns the network, with weights distributed like trained ones: most of them are small.
  Network take() {
    for (NetworkOperation& operation : builder_.network().operations) {
      operation.operation.weights.quantization.zeroPoint = 0;
      for (uint8_t& byte : operation.weights) {
        int sum = 0;
        for (int i = 0; i < 8; ++i) sum += static_cast<int>(builder_.random()() % 49);
        byte = static_cast<uint8_t>(sum - 8 * 24);
      }
    }
    return builder_.network();
  }

 private:
  static constexpr float kScale = 0.05F;

  /// Gives all feature maps the same scale, however deep the network is, and adapts the scale of the weights.
  int32_t withCommonScale(int32_t tensor) {
    Network& network = builder_.network();
    Operation& operation = network.operations.back().operation;
    const float factor = kScale / operation.outputQuantization.scales[0];
    operation.outputQuantization.scales = {kScale};
    network.tensors[static_cast<size_t>(tensor)].quantization.scales = {kScale};
    for (float& scale : operation.weights.quantization.scales) scale *= factor;
    operation.bias.quantization.scales.clear();
    for (float scale : operation.weights.quantization.scales)
      operation.bias.quantization.scales.push_back(kScale * scale);
    return tensor;
  }

  NetworkBuilder builder_{DataType::S8, 1};
};

}  // namespace

Network knownNetwork(std::string_view name) {
  OperationMaker maker;
  drawNetwork(name, maker);
  return maker.take();
}

}  // namespace carina::ethosn::test
