// SPDX-License-Identifier: Apache-2.0
#include "ethosn/network_shapes.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace carina::ethosn::test {
namespace {

constexpr Padding kBehind{0, 1, 0, 1};  // keeps ceil(size / 2) of an even size

/// Keeps the most recent feature map, and derives the padding of layers.
class Shapes {
 public:
  Shapes(ShapeMaker& maker, uint32_t size) : maker_(maker), made_(maker.image(size)) {}

  ShapeMaker& maker() { return maker_; }
  int32_t made() const { return made_; }
  void go(int32_t map) { made_ = map; }
  uint32_t channels() const { return maker_.extents(made_).channels; }

  int32_t conv(int32_t in, uint32_t height, uint32_t width, uint32_t outputs, uint32_t stride = 1,
               const Padding& padding = {}) {
    return maker_.convolution(in, height, width, outputs, stride, padding);
  }
  /// The output has the height and width of the input, divided by the stride and rounded up.
  int32_t same(int32_t in, uint32_t size, uint32_t outputs, uint32_t stride = 1) {
    return conv(in, size, size, outputs, stride, padded(in, size, stride));
  }
  int32_t depthwiseSame(int32_t in, uint32_t size, uint32_t stride) {
    return maker_.depthwise(in, size, stride, padded(in, size, stride));
  }
  int32_t maxPool(int32_t in, const Padding& padding = {}) { return maker_.maxPool(in, padding); }
  int32_t add(int32_t a, int32_t b) { return maker_.add(a, b); }
  void classify(uint32_t classes) { maker_.classify(made_, classes); }

 private:
  Padding padded(int32_t in, uint32_t size, uint32_t stride) const {
    const Extents of = maker_.extents(in);
    return samePadding(of.height, of.width, {size, size}, {stride, stride}, SamePadding::PreferAfter);
  }

  ShapeMaker& maker_;
  int32_t made_;
};

/// Up to the last feature map; `taps` receives the feature maps that a detector reads.
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

void drawMobilenetV1(ShapeMaker& maker) {
  Shapes net(maker, 224);
  mobilenetV1(net);
  net.classify(1001);
}

void drawMobilenetV2(ShapeMaker& maker) {
  Shapes net(maker, 224);
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
}

void drawResnet50(ShapeMaker& maker) {
  Shapes net(maker, 224);
  net.go(net.conv(net.made(), 7, 7, 64, 2, {3, 3, 3, 3}));
  net.go(net.maxPool(net.made(), kBehind));
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
}

void inceptionStem(Shapes& net) {
  net.go(net.conv(net.made(), 3, 3, 32, 2));
  net.go(net.conv(net.made(), 3, 3, 32));
  net.go(net.same(net.made(), 3, 64));
  net.go(net.maxPool(net.made()));
  net.go(net.conv(net.made(), 1, 1, 80));
  net.go(net.conv(net.made(), 3, 3, 192));
  net.go(net.maxPool(net.made()));
}

int32_t pooledBranch(Shapes& net, uint32_t outputs) {
  return net.same(net.maker().averagePool(net.made()), 1, outputs);
}

void inceptionA(Shapes& net, uint32_t pooled) {
  const int32_t in = net.made();
  const int32_t wide = net.same(net.same(in, 1, 48), 5, 64);
  const int32_t deep = net.same(net.same(net.same(in, 1, 64), 3, 96), 3, 96);
  net.go(net.maker().concatenation({net.same(in, 1, 64), wide, deep, pooledBranch(net, pooled)}));
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
  net.go(net.maker().concatenation({net.same(in, 1, 192), once, twice, pooledBranch(net, 192)}));
}

void inceptionC(Shapes& net) {
  const int32_t in = net.made();
  const auto split = [&](int32_t from) {
    return net.maker().concatenation(
        {net.conv(from, 1, 3, 384, 1, {0, 0, 1, 1}), net.conv(from, 3, 1, 384, 1, {1, 1, 0, 0})});
  };
  const int32_t once = split(net.same(in, 1, 384)), twice = split(net.same(net.same(in, 1, 448), 3, 384));
  net.go(net.maker().concatenation({net.same(in, 1, 320), once, twice, pooledBranch(net, 192)}));
}

void drawInceptionV3(ShapeMaker& maker) {
  Shapes net(maker, 299);
  inceptionStem(net);
  for (uint32_t pooled : {32U, 64U, 64U}) inceptionA(net, pooled);
  {
    const int32_t in = net.made();
    const int32_t deep = net.conv(net.same(net.same(in, 1, 64), 3, 96), 3, 3, 96, 2);
    net.go(net.maker().concatenation({net.conv(in, 3, 3, 384, 2), deep, net.maxPool(in)}));
  }
  for (uint32_t inner : {128U, 160U, 160U, 192U}) inceptionB(net, inner);
  {
    const int32_t in = net.made();
    const int32_t row = net.conv(net.same(in, 1, 192), 1, 7, 192, 1, {0, 0, 3, 3});
    const int32_t deep = net.conv(net.conv(row, 7, 1, 192, 1, {3, 3, 0, 0}), 3, 3, 192, 2);
    net.go(net.maker().concatenation({net.conv(net.same(in, 1, 192), 3, 3, 320, 2), deep, net.maxPool(in)}));
  }
  inceptionC(net);
  inceptionC(net);
  net.classify(1001);
}

/// SSD on MobileNet v1: six feature maps, each with the boxes and classes of three or six anchors.
void drawSsdMobilenetV1(ShapeMaker& maker) {
  Shapes net(maker, 300);
  std::vector<int32_t> maps;
  mobilenetV1(net, &maps);
  constexpr std::array<std::array<uint32_t, 2>, 4> kFurther = {
      {{256, 512}, {128, 256}, {128, 256}, {64, 128}}};
  for (const auto& [inner, outer] : kFurther) {
    net.go(net.same(net.same(net.made(), 1, inner), 3, outer, 2));
    maps.push_back(net.made());
  }
  std::vector<int32_t> boxes, classes;
  for (size_t i = 0; i < maps.size(); ++i) {
    const uint32_t anchors = i == 0 ? 3 : 6;
    const Extents of = maker.extents(maps[i]);
    const uint32_t count = of.height * of.width * anchors;
    boxes.push_back(maker.rows(net.conv(maps[i], 1, 1, anchors * 4), count));
    classes.push_back(maker.rows(net.conv(maps[i], 1, 1, anchors * 91), count));
  }
  maker.detections(boxes);
  maker.detections(classes);
}

struct Known {
  std::string_view name;
  void (*draw)(ShapeMaker&);
};
constexpr Known kKnown[] = {{"mobilenet_v1", drawMobilenetV1},
                            {"mobilenet_v2_shapes", drawMobilenetV2},
                            {"resnet50", drawResnet50},
                            {"inception_v3", drawInceptionV3},
                            {"ssd_mobilenet_v1", drawSsdMobilenetV1}};

}  // namespace

std::vector<std::string_view> knownNetworks() {
  std::vector<std::string_view> names;
  for (const Known& known : kKnown) names.push_back(known.name);
  return names;
}

void drawNetwork(std::string_view name, ShapeMaker& maker) {
  const auto* found =
      std::find_if(std::begin(kKnown), std::end(kKnown), [name](const Known& k) { return k.name == name; });
  CARINA_CHECK(found != std::end(kKnown), "the caller has the name from the list");
  found->draw(maker);
}

}  // namespace carina::ethosn::test
