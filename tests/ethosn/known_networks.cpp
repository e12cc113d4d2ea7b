// SPDX-License-Identifier: Apache-2.0
#include "ethosn/known_networks.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ethosn/reference.hpp"

namespace carina::ethosn::test {
namespace {

constexpr Padding kBehind{0, 1, 0, 1};  // keeps ceil(size / 2) of an even size

class Shapes {
 public:
  explicit Shapes(uint32_t size) : made_(builder_.input(size, size, 3)) {}

  int32_t made() const { return made_; }
  void go(int32_t tensor) { made_ = tensor; }
  NetworkBuilder& builder() { return builder_; }
  uint32_t channels() { return shape()[3]; }
  const Shape& shape() { return builder_.network().tensors[static_cast<size_t>(made_)].shape; }

  int32_t conv(int32_t in, uint32_t height, uint32_t width, uint32_t outputs, uint32_t stride = 1,
               Padding padding = {}) {
    return settled(builder_.convolution(in, height, width, outputs, stride, padding));
  }
  /// Of as many rows and columns as the input, divided by the stride and rounded up.
  int32_t same(int32_t in, uint32_t size, uint32_t outputs, uint32_t stride = 1) {
    return conv(in, size, size, outputs, stride, samePadding(in, size, stride));
  }
  int32_t depthwiseSame(int32_t in, uint32_t size, uint32_t stride) {
    return settled(builder_.depthwise(in, size, stride, samePadding(in, size, stride)));
  }
  int32_t add(int32_t a, int32_t b) { return builder_.binary(Operator::Addition, a, b, kScale, 110); }
  void classify(uint32_t classes) {
    const int32_t mean = builder_.unary(Operator::MeanXy, made_);
    builder_.output(settled(builder_.fullyConnected(mean, classes)));
  }

  /// The network, with weights like those that training leaves: most of them small.
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
  Padding samePadding(int32_t in, uint32_t size, uint32_t stride) {
    const Shape& of = builder_.network().tensors[static_cast<size_t>(in)].shape;
    return ethosn::samePadding(of[1], of[2], {size, size}, {stride, stride}, SamePadding::PreferAfter);
  }

  static constexpr float kScale = 0.05F;

  /// All maps have one scale, however deep the network is; that of the weights goes with it.
  int32_t settled(int32_t tensor) {
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
  int32_t made_;
};

/// Up to the last map; `taps` gets the maps that a detector looks at.
void mobilenetV1(Shapes& net, std::vector<int32_t>* taps = nullptr) {
  net.go(net.same(net.made(), 3, 32, 2));
  struct Block {
    uint32_t outputs, stride;
  };
  constexpr Block kBlocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                               {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  for (const Block& block : kBlocks) {
    if (taps != nullptr && block.outputs == 1024 && block.stride == 2) taps->push_back(net.made());
    net.go(net.depthwiseSame(net.made(), 3, block.stride));
    net.go(net.same(net.made(), 1, block.outputs));
  }
  if (taps != nullptr) taps->push_back(net.made());
}

Network makeMobilenetV1() {
  Shapes net(224);
  mobilenetV1(net);
  net.classify(1001);
  return net.take();
}

Network makeMobilenetV2() {
  Shapes net(224);
  net.go(net.same(net.made(), 3, 32, 2));
  struct Stage {
    uint32_t expansion, outputs, repeats, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  for (const Stage& stage : kStages) {
    for (uint32_t i = 0; i < stage.repeats; ++i) {
      const int32_t before = net.made();
      const uint32_t inputs = net.channels(), stride = i == 0 ? stage.stride : 1;
      if (stage.expansion > 1) net.go(net.same(net.made(), 1, inputs * stage.expansion));
      net.go(net.depthwiseSame(net.made(), 3, stride));
      net.go(net.same(net.made(), 1, stage.outputs));
      if (stride == 1 && inputs == stage.outputs) net.go(net.add(net.made(), before));
    }
  }
  net.go(net.same(net.made(), 1, 1280));
  net.classify(1001);
  return net.take();
}

Network makeResnet50() {
  Shapes net(224);
  net.go(net.conv(net.made(), 7, 7, 64, 2, {3, 3, 3, 3}));
  net.go(net.builder().pooling(net.made(), PoolingType::Max, 3, 2, kBehind));
  struct Stage {
    uint32_t channels, blocks, stride;
  };
  for (const Stage& stage : {Stage{64, 3, 1}, Stage{128, 4, 2}, Stage{256, 6, 2}, Stage{512, 3, 2}}) {
    for (uint32_t i = 0; i < stage.blocks; ++i) {
      const int32_t before = net.made();
      const uint32_t stride = i == 0 ? stage.stride : 1;
      const int32_t branch = net.same(
          net.same(net.same(before, 1, stage.channels), 3, stage.channels, stride), 1, stage.channels * 4);
      net.go(net.add(branch, i == 0 ? net.same(before, 1, stage.channels * 4, stride) : before));
    }
  }
  net.classify(1001);
  return net.take();
}

void inceptionStem(Shapes& net) {
  NetworkBuilder& b = net.builder();
  net.go(net.conv(net.made(), 3, 3, 32, 2));
  net.go(net.conv(net.made(), 3, 3, 32));
  net.go(net.same(net.made(), 3, 64));
  net.go(b.pooling(net.made(), PoolingType::Max, 3, 2));
  net.go(net.conv(net.made(), 1, 1, 80));
  net.go(net.conv(net.made(), 3, 3, 192));
  net.go(b.pooling(net.made(), PoolingType::Max, 3, 2));
}

int32_t pooledBranch(Shapes& net, uint32_t outputs) {
  return net.same(net.builder().pooling(net.made(), PoolingType::Average, 3, 1, {1, 1, 1, 1}), 1, outputs);
}

void inceptionA(Shapes& net, uint32_t pooled) {
  const int32_t in = net.made();
  const int32_t wide = net.same(net.same(in, 1, 48), 5, 64);
  const int32_t deep = net.same(net.same(net.same(in, 1, 64), 3, 96), 3, 96);
  net.go(net.builder().concatenation({net.same(in, 1, 64), wide, deep, pooledBranch(net, pooled)}, 3));
}

void inceptionB(Shapes& net, uint32_t inner) {
  const int32_t in = net.made();
  const auto row = [&](int32_t from, uint32_t outputs) {
    return net.conv(from, 1, 7, outputs, 1, {0, 0, 3, 3});
  };
  const auto column = [&](int32_t from, uint32_t outputs) {
    return net.conv(from, 7, 1, outputs, 1, {3, 3, 0, 0});
  };
  const int32_t once = column(row(net.same(in, 1, inner), inner), 192);
  const int32_t twice = row(column(row(column(net.same(in, 1, inner), inner), inner), inner), 192);
  net.go(net.builder().concatenation({net.same(in, 1, 192), once, twice, pooledBranch(net, 192)}, 3));
}

void inceptionC(Shapes& net) {
  const int32_t in = net.made();
  const auto split = [&](int32_t from) {
    return net.builder().concatenation(
        {net.conv(from, 1, 3, 384, 1, {0, 0, 1, 1}), net.conv(from, 3, 1, 384, 1, {1, 1, 0, 0})}, 3);
  };
  const int32_t once = split(net.same(in, 1, 384)), twice = split(net.same(net.same(in, 1, 448), 3, 384));
  net.go(net.builder().concatenation({net.same(in, 1, 320), once, twice, pooledBranch(net, 192)}, 3));
}

Network makeInceptionV3() {
  Shapes net(299);
  NetworkBuilder& b = net.builder();
  inceptionStem(net);
  for (uint32_t pooled : {32U, 64U, 64U}) inceptionA(net, pooled);
  {
    const int32_t in = net.made();
    const int32_t deep = net.conv(net.same(net.same(in, 1, 64), 3, 96), 3, 3, 96, 2);
    net.go(b.concatenation({net.conv(in, 3, 3, 384, 2), deep, b.pooling(in, PoolingType::Max, 3, 2)}, 3));
  }
  for (uint32_t inner : {128U, 160U, 160U, 192U}) inceptionB(net, inner);
  {
    const int32_t in = net.made();
    const int32_t row = net.conv(net.same(in, 1, 192), 1, 7, 192, 1, {0, 0, 3, 3});
    const int32_t deep = net.conv(net.conv(row, 7, 1, 192, 1, {3, 3, 0, 0}), 3, 3, 192, 2);
    net.go(b.concatenation(
        {net.conv(net.same(in, 1, 192), 3, 3, 320, 2), deep, b.pooling(in, PoolingType::Max, 3, 2)}, 3));
  }
  inceptionC(net);
  inceptionC(net);
  net.classify(1001);
  return net.take();
}

/// SSD with MobileNet v1 in front: six maps, of each the boxes and classes of three or six anchors.
Network makeSsdMobilenetV1() {
  Shapes net(300);
  std::vector<int32_t> maps;
  mobilenetV1(net, &maps);
  constexpr std::array<std::array<uint32_t, 2>, 4> kFurther = {
      {{256, 512}, {128, 256}, {128, 256}, {64, 128}}};
  for (const auto& [inner, outer] : kFurther) {
    net.go(net.same(net.same(net.made(), 1, inner), 3, outer, 2));
    maps.push_back(net.made());
  }
  NetworkBuilder& b = net.builder();
  std::vector<int32_t> boxes, classes;
  for (size_t i = 0; i < maps.size(); ++i) {
    const uint32_t anchors = i == 0 ? 3 : 6;
    const Shape shape = b.network().tensors[static_cast<size_t>(maps[i])].shape;
    const uint32_t count = shape[1] * shape[2] * anchors;
    boxes.push_back(b.reshape(net.conv(maps[i], 1, 1, anchors * 4), {1, 1, count, 4}));
    classes.push_back(b.reshape(net.conv(maps[i], 1, 1, anchors * 91), {1, 1, count, 91}));
  }
  b.output(b.concatenation(boxes, 2, 0.05F, 120));
  b.output(b.concatenation(classes, 2, 0.05F, 120));
  return net.take();
}

struct Known {
  std::string_view name;
  Network (*make)();
};
constexpr Known kKnown[] = {{"mobilenet_v1", makeMobilenetV1},
                            {"mobilenet_v2_shapes", makeMobilenetV2},
                            {"resnet50", makeResnet50},
                            {"inception_v3", makeInceptionV3},
                            {"ssd_mobilenet_v1", makeSsdMobilenetV1}};

}  // namespace

std::vector<std::string_view> knownNetworks() {
  std::vector<std::string_view> names;
  for (const Known& known : kKnown) names.push_back(known.name);
  return names;
}

Network knownNetwork(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kKnown), std::end(kKnown), [name](const Known& k) { return k.name == name; });
  CARINA_CHECK(found != std::end(kKnown), "the caller has the name from the list");
  return found->make();
}

}  // namespace carina::ethosn::test
