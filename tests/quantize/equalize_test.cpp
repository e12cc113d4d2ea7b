// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalisation and bias correction keep the function and make the quantized network more
// accurate.
#include <gtest/gtest.h>

#include <cmath>

#include "aten/executor.hpp"
#include "quantize/quantize.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

/// A depthwise-separable block whose channels differ by powers of two: the depthwise layer scales channels
/// up, the pointwise one scales them down again.
ir::Graph badlyScaled(bool relu) {
  Network n;
  Value* x = n.input({1, 8, 6, 6});
  std::vector<float> up, down;
  for (int c = 0; c < 8; ++c) up.push_back(std::ldexp(c % 2 == 0 ? 1.0f : -1.0f, c));
  x = n.depthwise(x, up);
  if (relu) x = n.relu(x);
  Tensor pointwise = ramp({4, 8, 1, 1}, -1, 1);
  const auto weights = pointwise.mutableAs<float>();
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::ldexp(weights[i], -static_cast<int>(i % 8));
  x = n.make<aten::Conv2d>(x, n.graph.addConstant(std::move(pointwise)), n.constant({4}, -1, 1), Ints{1, 1},
                           Ints{0, 0}, Ints{1, 1}, 1);
  n.done(x);
  return std::move(n.graph);
}

std::vector<Sample> samplesFor(const ir::Graph& graph, float low = -1) {
  std::vector<Sample> samples;
  samples.reserve(4);
  for (int s = 0; s < 4; ++s) {
    samples.push_back({ramp(graph.inputs()[0]->shape(), low - static_cast<float>(s) / 8, 1)});
  }
  return samples;
}

double outputSqnr(const ir::Graph& graph, const Options& options) {
  const std::vector<Sample> samples = samplesFor(graph);
  auto quantized = quantize(graph.clone(), options, samples);
  if (!quantized.ok()) return NAN;
  Sqnr sqnr;
  for (const Sample& sample : samples) {
    sqnr.add((*aten::execute(graph, sample))[0], (*aten::execute(quantized->graph, sample))[0]);
  }
  return sqnr.decibels();
}

double largestDifference(const Tensor& a, const Tensor& b) {
  double largest = 0, magnitude = 0;
  for (int64_t i = 0; i < a.numElements(); ++i) {
    largest = std::max(largest, std::abs(a.realAt(i) - b.realAt(i)));
    magnitude = std::max(magnitude, std::abs(a.realAt(i)));
  }
  return largest / magnitude;
}

TEST(Equalize, KeepsTheFunction) {
  for (const bool relu : {false, true}) {
    ir::Graph graph = badlyScaled(relu);
    const Sample sample = samplesFor(graph)[0];
    const Tensor before = (*aten::execute(graph, sample))[0];
    EXPECT_EQ(*equalize(graph, {}), 1u);
    EXPECT_LE(largestDifference(before, (*aten::execute(graph, sample))[0]), 1e-5);
  }
}

TEST(Equalize, BothSidesGetTheSameWeightRange) {
  ir::Graph graph = badlyScaled(true);
  ASSERT_TRUE(equalize(graph, {}).ok());
  std::vector<float> made(8, 0), read(8, 0);
  for (ir::Node* node : graph.nodes()) {
    const auto conv = ir::dynCast<aten::Conv2d>(node);
    if (!conv) continue;
    const auto weights = conv.weight()->constant().as<float>();
    for (size_t i = 0; i < weights.size(); ++i) {
      float& largest = conv.groups() == 8 ? made[i] : read[i % 8];
      largest = std::max(largest, std::abs(weights[i]));
    }
  }
  for (size_t c = 0; c < 8; ++c) EXPECT_NEAR(made[c] / read[c], 1, 1e-3) << c;
}

TEST(Equalize, ImprovesABadlyScaledNetwork) {
  const ir::Graph graph = badlyScaled(true);
  for (const bool perChannel : {false, true}) {
    Options plain, equalized;
    plain.perChannelWeights = equalized.perChannelWeights = perChannel;
    equalized.equalize = true;
    EXPECT_GT(outputSqnr(graph, equalized), outputSqnr(graph, plain) + 10)
        << (perChannel ? "per channel" : "per tensor");
  }
}

TEST(Equalize, SkipsNonHomogeneousAndSharedValues) {
  Network clamped;
  Value* x = clamped.depthwise(clamped.input({1, 2, 4, 4}), {1, 100});
  x = clamped.make<aten::Hardtanh>(x, 0.0, 6.0);
  clamped.done(clamped.conv(x, 2));
  EXPECT_EQ(*equalize(clamped.graph, {}), 0u);
  Network twice;
  x = twice.depthwise(twice.input({1, 2, 4, 4}), {1, 100});
  Value* y = twice.conv(x, 2);
  twice.done(twice.make<aten::AddTensor>(x, y, int64_t{1}));
  EXPECT_EQ(*equalize(twice.graph, {}), 0u);
}

TEST(Equalize, LimitsClampTheSameValues) {
  // Channel 0 reaches the limit and keeps its scale; channel 1 stays far below and may be scaled up to it.
  const auto network = [](Network& n) {
    Value* x = n.depthwise(n.input({1, 2, 4, 4}), {10, 0.01f});
    x = n.make<aten::Hardtanh>(x, 0.0, 6.0);
    n.done(n.conv(x, 2));
  };
  Network n;
  network(n);
  const std::vector<Sample> samples{{ramp({1, 2, 4, 4}, -1, 2)}};
  const Tensor before = (*aten::execute(n.graph, samples[0]))[0];
  EXPECT_EQ(*equalize(n.graph, samples), 1u);
  const auto first = ir::dynCast<aten::Conv2d>(n.graph.firstNode());
  const auto weights = first.weight()->constant().as<float>();
  EXPECT_EQ(weights[0], 10);
  EXPECT_GT(weights[1], 0.02f);
  EXPECT_LE(weights[1] * 2, 6.001f);
  EXPECT_LE(largestDifference(before, (*aten::execute(n.graph, samples[0]))[0]), 1e-5);
}

TEST(Equalize, NoChannelGrowsBeyondTheLargest) {
  Network n;
  Value* x = n.depthwise(n.input({1, 2, 4, 4}), {1, 0.001f});
  Value* made = n.relu(x);
  n.done(n.conv(made, 2));
  const std::vector<Sample> samples{{ramp({1, 2, 4, 4}, -1, 2)}};
  ASSERT_TRUE(equalize(n.graph, samples).ok());
  const auto weights = ir::dynCast<aten::Conv2d>(n.graph.firstNode()).weight()->constant().as<float>();
  EXPECT_LE(std::abs(weights[1]), std::abs(weights[0]) * 1.05f);
}

TEST(Equalize, ChainsGroupsTransposedAndLinear) {
  Network n;
  Value* x = n.conv(n.input({1, 4, 5, 5}), 8);
  x = n.make<aten::Conv2d>(n.relu(x), n.constant({4, 4, 3, 3}, -1, 3), n.constant({4}, -1, 1), Ints{1, 1},
                           Ints{1, 1}, Ints{1, 1}, 2);
  x = n.make<aten::ConvTranspose2dInput>(x, n.constant({4, 3, 2, 2}, -2, 1), n.constant({6}, -1, 1),
                                         Ints{2, 2}, Ints{0, 0}, Ints{0, 0}, 2, Ints{1, 1});
  x = n.make<aten::View>(n.conv(x, 2), Ints{1, 200});
  x = n.make<aten::Linear>(x, n.constant({5, 200}, -1, 1), n.constant({5}, -1, 1));
  x = n.make<aten::Linear>(n.relu(x), n.constant({3, 5}, -4, 1), nullptr);
  n.done(x);
  const Sample sample{ramp({1, 4, 5, 5}, -1, 2)};
  const Tensor before = (*aten::execute(n.graph, sample))[0];
  EXPECT_EQ(*equalize(n.graph, {}), 4u);
  EXPECT_LE(largestDifference(before, (*aten::execute(n.graph, sample))[0]), 1e-5);
}

/// Absolute sum over all samples of quantized minus float output.
double meanError(const ir::Graph& graph, const Options& options) {
  const std::vector<Sample> samples = samplesFor(graph, 0.5f);
  const auto quantized = quantize(graph.clone(), options, samples);
  double sum = 0;
  for (const Sample& sample : samples) {
    const Tensor want = (*aten::execute(graph, sample))[0],
                 got = (*aten::execute(quantized->graph, sample))[0];
    for (int64_t i = 0; i < want.numElements(); ++i) sum += got.realAt(i) - want.realAt(i);
  }
  return std::abs(sum);
}

TEST(BiasCorrection, RemovesTheMeanError) {
  // One weight dominates the per-tensor scale; the others, 0.4 of a code each, round to zero although their
  // inputs have a nonzero mean.
  Network n;
  Tensor weight = Tensor::uninitialized(DType::Float32, {2, 4, 1, 1});
  const auto values = weight.mutableAs<float>();
  std::fill(values.begin(), values.end(), 0.4f / 127);
  values[0] = 1;
  Value* x = n.make<aten::Conv2d>(n.input({1, 4, 6, 6}), n.graph.addConstant(std::move(weight)), nullptr,
                                  Ints{1, 1}, Ints{0, 0}, Ints{1, 1}, 1);
  n.done(x);
  Options plain, corrected;
  plain.observer = corrected.observer = ObserverKind::MinMax;
  plain.precision = corrected.precision = Precision::Int16x8;
  plain.perChannelWeights = corrected.perChannelWeights = false;
  corrected.correctBiases = true;
  EXPECT_LT(meanError(n.graph, corrected), 0.05 * meanError(n.graph, plain));
}

TEST(BiasCorrection, LinearAndTransposedLayers) {
  Network n;
  Value* x = n.make<aten::ConvTranspose2dInput>(n.input({1, 4, 3, 3}), n.constant({4, 2, 2, 2}, -1, 1),
                                                n.constant({2}, -1, 1), Ints{2, 2}, Ints{0, 0}, Ints{0, 0}, 1,
                                                Ints{1, 1});
  n.done(n.make<aten::Linear>(x, n.constant({3, 6}, -1, 1), nullptr));
  Options plain, corrected;
  corrected.correctBiases = true;
  EXPECT_GT(outputSqnr(n.graph, corrected), outputSqnr(n.graph, plain) - 1);
}

TEST(MeasureSqnr, EveryTensorHasOne) {
  Network n;
  Value* x = n.relu(n.conv(n.input({1, 2, 6, 6}), 4));
  n.done(n.conv(x, 2));
  const std::vector<Sample> samples{{ramp({1, 2, 6, 6}, -1, 2)}};
  auto quantized = require(quantize(std::move(n.graph), {}, samples));
  ASSERT_TRUE(measureSqnr(quantized, samples, quantized.report).ok());
  ASSERT_EQ(quantized.report.tensors.size(), 7u);
  for (const TensorReport& tensor : quantized.report.tensors) {
    EXPECT_GT(tensor.sqnr.decibels(), 25) << tensor.name;
    EXPECT_LT(tensor.sqnr.decibels(), tensor.dtype == DType::Int32 ? 250 : 70) << tensor.name;
  }
}

}  // namespace
}  // namespace carina::quantize
