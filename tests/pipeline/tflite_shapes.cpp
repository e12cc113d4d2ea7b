// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tflite_shapes.hpp"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "ethosn/network_shapes.hpp"
#include "tflite/file_builder.hpp"

namespace carina::pipeline {
namespace {

namespace fb = tflite::fb;
using ethosn::Padding;
using ethosn::test::Extents;
using test::optionsOf;
using test::TfliteFile;

// Operator codes of TensorFlow Lite's format.
enum Builtin : int32_t {
  kAdd = 0,
  kAveragePool2d = 1,
  kConcatenation = 2,
  kConv2d = 3,
  kDepthwiseConv2d = 4,
  kFullyConnected = 9,
  kMaxPool2d = 17,
  kReshape = 22,
  kSoftmax = 25,
  kPad = 34,
  kMean = 40,
};
constexpr int8_t kSame = 0, kValid = 1, kRelu6 = 3;

class TfliteMaker : public ethosn::test::ShapeMaker {
 public:
  TfliteMaker() { file_.plan = false; }

  Extents extents(int32_t map) const override {
    const auto& shape = file_.tensors[static_cast<size_t>(map)].shape;
    const auto size = [&shape](size_t axis) { return static_cast<uint32_t>(shape[axis]); };
    return {size(1), size(2), size(3)};
  }
  int32_t image(uint32_t size) override {
    file_.inputs = {map({size, size, 3})};
    return file_.inputs[0];
  }
  int32_t convolution(int32_t in, uint32_t height, uint32_t width, uint32_t outputs, uint32_t stride,
                      const Padding& padding) override {
    const auto [from, rule] = padded(in, height, width, stride, padding);
    fb::Conv2DOptionsT options;
    options.padding = rule;
    options.stride_h = options.stride_w = static_cast<int32_t>(stride);
    const uint32_t inputs = extents(from).channels;
    return weighted(kConv2d, from, {outputs, height, width, inputs}, outputs, height * width * inputs,
                    strided(from, height, width, stride, rule, outputs), optionsOf(options));
  }
  int32_t depthwise(int32_t in, uint32_t size, uint32_t stride, const Padding& padding) override {
    const auto [from, rule] = padded(in, size, size, stride, padding);
    fb::DepthwiseConv2DOptionsT options;
    options.padding = rule;
    options.stride_h = options.stride_w = static_cast<int32_t>(stride);
    options.depth_multiplier = 1;
    options.fused_activation_function = kRelu6;
    const uint32_t channels = extents(from).channels;
    return weighted(kDepthwiseConv2d, from, {1, size, size, channels}, channels, size * size,
                    strided(from, size, size, stride, rule, channels), optionsOf(options));
  }
  int32_t maxPool(int32_t in, const Padding& padding) override {
    const auto [from, rule] = padded(in, 3, 3, 2, padding);
    return pool(kMaxPool2d, from, 2, rule);
  }
  int32_t averagePool(int32_t in) override { return pool(kAveragePool2d, in, 1, kSame); }
  int32_t add(int32_t a, int32_t b) override {
    return operation(kAdd, {a, b}, map(extents(a)), optionsOf(fb::AddOptionsT{}));
  }
  int32_t concatenation(const std::vector<int32_t>& parts) override {
    Extents all = extents(parts[0]);
    all.channels = 0;
    for (const int32_t part : parts) all.channels += extents(part).channels;
    return joined(parts, 3, map(all));
  }
  int32_t rows(int32_t in, uint32_t count) override {
    const Extents of = extents(in);
    const uint32_t channels = of.height * of.width * of.channels / count;
    const int32_t shape = numbers({1, 1, static_cast<int32_t>(count), static_cast<int32_t>(channels)});
    return operation(kReshape, {in, shape}, map({1, count, channels}));
  }
  void classify(int32_t in, uint32_t classes) override {
    const uint32_t channels = extents(in).channels;
    const int32_t mean =
        operation(kMean, {in, numbers({1, 2})}, flat(channels), optionsOf(fb::ReducerOptionsT{}));
    const int32_t scores = weighted(kFullyConnected, mean, {classes, channels}, classes, channels,
                                    flat(classes), optionsOf(fb::FullyConnectedOptionsT{}));
    const int32_t likely = flat(classes);
    tensor(likely).scales = {1.0F / 256};
    tensor(likely).zeroPoints = {-128};
    fb::SoftmaxOptionsT softmax;
    softmax.beta = 1;
    file_.outputs = {operation(kSoftmax, {scores}, likely, optionsOf(softmax))};
  }
  void detections(const std::vector<int32_t>& parts) override {
    Extents all = extents(parts[0]);
    all.width = 0;
    for (const int32_t part : parts) all.width += extents(part).width;
    file_.outputs.push_back(joined(parts, 2, map(all)));
  }
  std::string bytes() const { return file_.bytes(); }

 private:
  static constexpr float kScale = 0.05F;
  static constexpr int64_t kZeroPoint = -8;

  TfliteFile::Tensor& tensor(int32_t index) { return file_.tensors[static_cast<size_t>(index)]; }
  int32_t addTensor(tflite::TensorType type, std::vector<int32_t> shape, std::string data,
                    std::vector<float> scales, std::vector<int64_t> zeroPoints) {
    file_.tensors.push_back({fmt::format("t{}", file_.tensors.size()), type, std::move(shape),
                             std::move(data), -1, std::move(scales), std::move(zeroPoints), 0});
    return static_cast<int32_t>(file_.tensors.size()) - 1;
  }
  int32_t map(const Extents& of) {
    const auto size = [](uint32_t extent) { return static_cast<int32_t>(extent); };
    return addTensor(tflite::TensorType::Int8, {1, size(of.height), size(of.width), size(of.channels)}, "",
                     {kScale}, {kZeroPoint});
  }
  int32_t flat(uint32_t channels) {
    return addTensor(tflite::TensorType::Int8, {1, static_cast<int32_t>(channels)}, "", {kScale},
                     {kZeroPoint});
  }
  int32_t words(const std::vector<int32_t>& values, std::vector<int32_t> shape, std::vector<float> scales) {
    std::vector<int64_t> zeroPoints(scales.size());
    return addTensor(tflite::TensorType::Int32, std::move(shape),
                     {reinterpret_cast<const char*>(values.data()), values.size() * 4}, std::move(scales),
                     std::move(zeroPoints));
  }
  int32_t numbers(const std::vector<int32_t>& values, std::vector<int32_t> shape = {}) {
    if (shape.empty()) shape = {static_cast<int32_t>(values.size())};
    return words(values, std::move(shape), {});
  }
  int32_t operation(Builtin code, std::vector<int32_t> inputs, int32_t output,
                    TfliteFile::Options options = {}) {
    file_.operators.push_back({"", code, std::move(inputs), {output}, std::move(options)});
    return output;
  }
  int32_t joined(const std::vector<int32_t>& parts, int32_t axis, int32_t output) {
    fb::ConcatenationOptionsT options;
    options.axis = axis;
    return operation(kConcatenation, parts, output, optionsOf(options));
  }
  int32_t pool(Builtin code, int32_t in, uint32_t stride, int8_t rule) {
    fb::Pool2DOptionsT options;
    options.padding = rule;
    options.filter_height = options.filter_width = 3;
    options.stride_h = options.stride_w = static_cast<int32_t>(stride);
    return operation(code, {in}, strided(in, 3, 3, stride, rule, extents(in).channels), optionsOf(options));
  }
  int32_t strided(int32_t in, uint32_t height, uint32_t width, uint32_t stride, int8_t rule,
                  uint32_t channels) {
    const Extents of = extents(in);
    const auto left = [&](uint32_t size, uint32_t window) {
      return ((rule == kSame ? size : size - window + 1) + stride - 1) / stride;
    };
    return map({left(of.height, height), left(of.width, width), channels});
  }

  struct Padded {
    int32_t map = 0;
    int8_t rule = kValid;
  };
  /// A padding that neither rule describes becomes a separate operator.
  Padded padded(int32_t in, uint32_t height, uint32_t width, uint32_t stride, const Padding& padding) {
    const Extents of = extents(in);
    if (padding == Padding{}) return {in, kValid};
    if (padding == ethosn::samePadding(of.height, of.width, {width, height}, {stride, stride},
                                       ethosn::SamePadding::PreferAfter))
      return {in, kSame};
    const auto by = [](uint32_t size) { return static_cast<int32_t>(size); };
    const int32_t sizes = numbers(
        {0, 0, by(padding.top), by(padding.bottom), by(padding.left), by(padding.right), 0, 0}, {4, 2});
    return {operation(kPad, {in, sizes},
                      map({of.height + padding.top + padding.bottom, of.width + padding.left + padding.right,
                           of.channels})),
            kValid};
  }

  /// Weights like those of trained networks, most of them small, and results with about the spread of the
  /// inputs. `taps`: weights per result.
  int32_t weighted(Builtin code, int32_t in, const std::vector<uint32_t>& shape, uint32_t outputs,
                   uint32_t taps, int32_t output, TfliteFile::Options options) {
    const std::vector<int32_t> sizes(shape.begin(), shape.end());
    std::string bytes(size_t{outputs} * taps, '\0');
    for (char& byte : bytes) {
      int sum = 0;
      for (int i = 0; i < 4; ++i) sum += static_cast<int>(random_() % 63);
      byte = static_cast<char>(sum - 4 * 31);
    }
    const auto root = std::sqrt(static_cast<float>(taps));
    const float scale = 0.02F / root;
    const int32_t filter = addTensor(tflite::TensorType::Int8, sizes, std::move(bytes), {scale}, {0});
    std::vector<int32_t> biases(outputs);
    const auto most = static_cast<int32_t>(500 * root);
    for (int32_t& bias : biases) bias = static_cast<int32_t>(random_() % (2 * most)) - most;
    const int32_t bias = words(biases, {static_cast<int32_t>(outputs)}, {kScale * scale});
    return operation(code, {in, filter, bias}, output, std::move(options));
  }

  TfliteFile file_;
  std::mt19937 random_;
};

}  // namespace

std::string tfliteNetwork(std::string_view name) {
  TfliteMaker maker;
  ethosn::test::drawNetwork(name, maker);
  return maker.bytes();
}

}  // namespace carina::pipeline
