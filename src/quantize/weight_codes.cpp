// SPDX-License-Identifier: Apache-2.0
#include "quantize/weight_codes.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "aten/conv_op.hpp"
#include "quantize/loops.hpp"

namespace carina::quantize {
namespace {

constexpr double kMaxBias = 0x1p30;  // half of what fits: headroom for rounding and sums
/// For 16-bit inputs: Ethos-U55's biases have 40 bits, which products do not take up.
constexpr double kMaxBias16 = 0x1p38;

/// Visits contiguous elements of channel c along `axis` as f(c, first flat index, end).
template <typename F>
void forEachRowOfChannel(const Shape& shape, int axis, F f) {
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[static_cast<size_t>(i)];
  for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t channels = shape[static_cast<size_t>(axis)];
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t row = (o * channels + c) * inner;
      f(static_cast<size_t>(c), static_cast<size_t>(row), static_cast<size_t>(row + inner));
    }
  }
}

/// Visits the elements of channel c along `axis` as f(c, flat index).
template <typename F>
void forEachOfChannel(const Shape& shape, int axis, F f) {
  forEachRowOfChannel(shape, axis, [&](size_t c, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) f(c, i);
  });
}

/// The two operators differ: 1 / scale is a float32 division per channel, and a double one per tensor.
float inverseOf(float scale, bool perChannel) {
  return perChannel ? 1.0f / scale : static_cast<float>(1.0 / static_cast<double>(scale));
}

/// The smallest scale from `scale` on for which scale * factor has 15 bits.
float withShortProduct(float scale, double factor) {
  int exponent = 0;
  const double mantissa = std::frexp(static_cast<double>(scale) * factor, &exponent);
  // Slightly less: values that only float rounding has lifted above such a number belong to it.
  const double product = std::ldexp(std::ceil(std::ldexp(mantissa, 15) - 0x1p-6), exponent - 15);
  return static_cast<float>(product / factor);
}

/// Multiplies scales, given by the largest magnitudes, by the fraction with the least squared error, per
/// channel (or overall).
void takeBestShares(const Tensor& weight, int axis, bool perChannel, const CodeRange& range,
                    std::vector<float>& scales) {
  constexpr std::array<float, 6> kShares{1, 0.95f, 0.9f, 0.85f, 0.8f, 0.75f};
  using PerShare = std::array<float, kShares.size()>;
  const auto values = weight.as<float>();
  const auto most = static_cast<float>(range.max);
  const size_t sets = perChannel ? scales.size() : 1;
  std::vector<PerShare> tried(sets), inverse(sets);
  std::vector<std::array<double, kShares.size()>> losses(sets);
  for (size_t c = 0; c < sets; ++c) {
    for (size_t s = 0; s < kShares.size(); ++s) {
      tried[c][s] = scales[c] * kShares[s];
      inverse[c][s] = 1 / tried[c][s];
    }
  }
  forEachOfChannel(weight.shape(), axis, [&](size_t channel, size_t i) {
    const size_t c = perChannel ? channel : 0;
    for (size_t s = 0; s < kShares.size(); ++s) {
      const float error = values[i] - weightCode(values[i] * inverse[c][s], most) * tried[c][s];
      losses[c][s] += error * error;
    }
  });
  for (size_t channel = 0; channel < scales.size(); ++channel) {
    const size_t c = perChannel ? channel : 0;
    const auto least = std::min_element(losses[c].begin(), losses[c].end());
    scales[channel] = tried[c][static_cast<size_t>(least - losses[c].begin())];
  }
}

}  // namespace

Status checkWeights(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted) {
  std::vector<Diagnostic> problems;
  for (ir::Node* node : nodesWithLoops(graph)) {
    const auto op = wanted && !wanted(*node) ? std::nullopt : asWeighted(*node);
    if (!op) continue;
    for (const ir::Value* value : {op->weight, op->bias}) {
      if (!value || value->dtype() != DType::Float32) continue;
      bool nonFinite = false;
      rangeOf(value->constant().as<float>(), &nonFinite);
      if (nonFinite) {
        problems.push_back(
            {fmt::format("{} holds NaN or infinite values", value->name.empty() ? "a weight" : value->name),
             "check the trained model: such weights cannot be quantized", "", node->where(),
             Code::UnusableQuantization});
      }
    }
  }
  if (!problems.empty()) return Error(std::move(problems));
  return {};
}

Sqnr WeightCodes::sqnr(const Tensor& weight) const {
  constexpr size_t kLanes = 8;  // independent sums
  std::array<Sqnr, kLanes> lanes;
  const auto values = weight.as<float>();
  const auto addAll = [&](auto integers) {
    forEachRowOfChannel(codes.shape(), axis, [&](size_t c, size_t begin, size_t end) {
      const float scale = scales[perChannel ? c : 0];
      size_t i = begin;
      for (; i + kLanes <= end; i += kLanes) {
        for (size_t k = 0; k < kLanes; ++k)
          lanes[k].add(values[i + k], static_cast<float>(integers[i + k]) * scale);
      }
      for (; i < end; ++i) lanes[0].add(values[i], static_cast<float>(integers[i]) * scale);
    });
  };
  if (codes.dtype() == DType::Int8) {
    addAll(codes.as<int8_t>());
  } else {
    addAll(codes.as<int32_t>());
  }
  Sqnr result;
  for (const Sqnr& lane : lanes) {
    result.signal += lane.signal;
    result.noise += lane.noise;
  }
  return result;
}

WeightCodes quantizeWeight(const Tensor& weight, int axis, bool perChannel, const CodeRange& range,
                           const std::vector<float>& leastScales, std::optional<double> shortFactor) {
  const auto values = weight.as<float>();
  const auto channels = static_cast<size_t>(weight.dim(axis));
  std::vector<float> magnitude(channels, 0.0f);
  forEachRowOfChannel(weight.shape(), axis, [&](size_t c, size_t begin, size_t end) {
    const Range row = rangeOf(values.subspan(begin, end - begin));
    magnitude[c] = std::max({magnitude[c], -row.min, row.max});
  });
  std::vector<float> least = leastScales.empty() ? std::vector<float>(channels, 0.0f) : leastScales;
  if (!perChannel) {
    magnitude.assign(channels, *std::max_element(magnitude.begin(), magnitude.end()));
    least.assign(channels, *std::max_element(least.begin(), least.end()));
  }
  WeightCodes result{Tensor::uninitialized(DType::Int8, weight.shape()), {}, perChannel, axis, range};
  for (size_t c = 0; c < channels; ++c) {
    const float eps = magnitude[c] > 0 ? kEpsTiny : kEpsInt8;
    result.scales.push_back(
        static_cast<float>(symmetricQParams(-magnitude[c], magnitude[c], range, eps).scale));
  }
  if (range != kInt8Weight) takeBestShares(weight, axis, perChannel, range, result.scales);
  std::vector<float> inverse;
  for (size_t c = 0; c < channels; ++c) {
    float& scale = result.scales[c];
    scale = std::max({scale, least[c], kEpsTiny});
    if (shortFactor) scale = withShortProduct(scale, *shortFactor);
    inverse.push_back(inverseOf(scale, perChannel));
  }
  const auto codes = result.codes.mutableAs<int8_t>();
  const auto most = static_cast<float>(range.max);
  forEachRowOfChannel(weight.shape(), axis, [&](size_t c, size_t begin, size_t end) {
    const float factor = inverse[c];
    for (size_t i = begin; i < end; ++i) codes[i] = static_cast<int8_t>(weightCode(values[i] * factor, most));
  });
  if (!perChannel) result.scales.resize(1);
  return result;
}

std::optional<LayerScales> layerScales(const ir::Node& node, const Annotation& annotation,
                                       const std::vector<QParams>& params) {
  const auto read = annotation.groupOfOperand(node, 0);
  if (!read) return std::nullopt;
  const ir::Value* result = node.result();
  // Skips clamps that limit the result's codes.
  while (annotation.producedIn.count(result) == 0 && result->hasOneUse() && isClamp(*result->uses()[0].node))
    result = result->uses()[0].node->result();
  const auto made = annotation.producedIn.find(result);
  LayerScales scales{params[*read].scale, 1};
  if (made != annotation.producedIn.end()) scales.output = params[made->second].scale;
  return scales;
}

WeightCodes quantizeWeight(const WeightedOp& op, const LayerScales& scales, const Settings& settings) {
  const Tensor& weight = op.weight->constant();
  const auto conv = aten::asConvolution(op.node);
  // The weight of a grouped transposed convolution has no axis with all output channels.
  const bool alongOutputs = !(conv && conv->transposed && conv->groups > 1);
  std::vector<float> least;
  if (op.bias && alongOutputs) {
    const double most = settings.precision == Precision::Int8 ? kMaxBias : kMaxBias16;
    for (float bias : op.bias->constant().as<float>()) {
      least.push_back(static_cast<float>(std::abs(bias) / (scales.input * most)));
    }
  }
  std::optional<double> shortFactor;
  if (settings.precision == Precision::Int16x8) shortFactor = scales.input / scales.output;
  return quantizeWeight(weight, op.weightAxis, settings.perChannelWeights && alongOutputs,
                        weightRange(settings.weightBits), least, shortFactor);
}

WeightCodes quantizeBias(const Tensor& bias, double inputScale, const WeightCodes& weight,
                         Precision precision) {
  const auto values = bias.as<float>();
  WeightCodes result{Tensor::uninitialized(DType::Int32, bias.shape()), {}, weight.perChannel, 0, kInt32Bias};
  // Groups of a transposed convolution share the scales of the weight.
  for (size_t c = 0; c < (weight.perChannel ? values.size() : 1); ++c)
    result.scales.push_back(static_cast<float>(inputScale) * weight.scales[c % weight.scales.size()]);
  if (precision != Precision::Int8) {
    for (size_t c = 0; c < values.size(); ++c) {
      float& scale = result.scales[weight.perChannel ? c : 0];
      while (std::abs(values[c]) / static_cast<double>(scale) > kMaxBias) scale *= 2;
    }
  }
  const auto codes = result.codes.mutableAs<int32_t>();
  for (size_t c = 0; c < values.size(); ++c) {
    const float inverse = inverseOf(result.scales[weight.perChannel ? c : 0], weight.perChannel);
    const auto limit = static_cast<double>(kInt32Bias.max);
    codes[c] = static_cast<int32_t>(
        std::clamp(static_cast<double>(std::nearbyint(values[c] * inverse)), -limit, limit));
  }
  return result;
}

}  // namespace carina::quantize
