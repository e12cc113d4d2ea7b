// SPDX-License-Identifier: Apache-2.0
// Weights rounded to minimize the output error, and range margins for unseen samples.
#include <gtest/gtest.h>

#include <cmath>

#include "aten/executor.hpp"
#include "quantize/quantize.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

/// Values vary smoothly along channels and space, as in real images.
std::vector<Sample> smoothSamples(const Shape& shape, size_t count, float grows = 0) {
  std::vector<Sample> samples;
  for (size_t s = 0; s < count; ++s) {
    Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
    const auto values = tensor.mutableAs<float>();
    const float scale = 1 + grows * static_cast<float>(s);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<float>(i), sample = static_cast<float>(s);
      values[i] = scale * (0.8f * std::sin(0.011f * at + sample) + 0.3f * std::sin(0.7f * at + 2 * sample) +
                           0.1f * std::sin(static_cast<float>(i * 7919 % 1013)));
    }
    samples.push_back({tensor});
  }
  return samples;
}

double sqnrOf(const ir::Graph& graph, const Options& options, std::span<const Sample> calibration,
              std::span<const Sample> judges) {
  const auto quantized = quantize(graph.clone(), options, calibration);
  if (!quantized.ok()) return NAN;
  Sqnr sqnr;
  for (const Sample& sample : judges)
    sqnr.add((*aten::execute(graph, sample))[0], (*aten::execute(quantized->graph, sample))[0]);
  return sqnr.decibels();
}

Options wide(bool fitted) {
  Options options;
  options.precision = Precision::Int16x8;
  options.fitWeights = fitted;
  options.correctBiases = true;
  return options;
}

struct Layer {
  const char* name;
  Shape input;
  std::function<Value*(Network&, Value*)> build;
};
void PrintTo(const Layer& layer, std::ostream* out) {
  *out << layer.name;
}

const Layer kLayers[] = {
    {"pointwise",
     {1, 24, 12, 12},
     [](Network& n, Value* x) {
       return n.make<aten::Conv2d>(x, n.constant({8, 24, 1, 1}, -1, 1), n.constant({8}, -1, 1), Ints{1, 1},
                                   Ints{0, 0}, Ints{1, 1}, 1);
     }},
    {"strided_dilated_padded",
     {2, 6, 15, 14},
     [](Network& n, Value* x) {
       return n.make<aten::Conv2d>(x, n.constant({8, 6, 3, 2}, -1, 1), nullptr, Ints{2, 1}, Ints{2, 1},
                                   Ints{2, 3}, 1);
     }},
    {"grouped",
     {1, 16, 12, 12},
     [](Network& n, Value* x) {
       return n.make<aten::Conv2d>(x, n.constant({8, 4, 3, 3}, -1, 1), n.constant({8}, -1, 1), Ints{1, 1},
                                   Ints{1, 1}, Ints{1, 1}, 4);
     }},
    {"depthwise",
     {1, 8, 20, 20},
     [](Network& n, Value* x) {
       return n.make<aten::Conv2d>(x, n.constant({8, 1, 5, 5}, -1, 1), nullptr, Ints{1, 1}, Ints{2, 2},
                                   Ints{1, 1}, 8);
     }},
    {"one_dimension",
     {1, 12, 200},
     [](Network& n, Value* x) {
       return n.make<aten::Conv1d>(x, n.constant({6, 12, 5}, -1, 1), nullptr, Ints{2}, Ints{2}, Ints{1}, 1);
     }},
    {"three_dimensions",
     {1, 4, 6, 8, 10},
     [](Network& n, Value* x) {
       return n.make<aten::Conv3d>(x, n.constant({6, 4, 2, 3, 3}, -1, 1), nullptr, Ints{1, 2, 1},
                                   Ints{0, 1, 1}, Ints{1, 1, 2}, 1);
     }},
    {"rows",
     {1, 96, 32},
     [](Network& n, Value* x) {
       return n.make<aten::Linear>(x, n.constant({8, 32}, -1, 1), n.constant({8}, -1, 1));
     }},
    {"more_columns_than_a_block",
     {1, 40, 12, 12},
     [](Network& n, Value* x) {
       return n.make<aten::Conv2d>(x, n.constant({70, 40, 3, 3}, -1, 1), nullptr, Ints{1, 1}, Ints{1, 1},
                                   Ints{1, 1}, 1);
     }},
};

class FitWeights : public testing::TestWithParam<Layer> {};

TEST_P(FitWeights, IsMoreAccurateThanRoundingToNearest) {
  Network n;
  n.done(GetParam().build(n, n.input(GetParam().input)));
  const auto samples = smoothSamples(GetParam().input, 12);
  const std::span<const Sample> all(samples);
  const double nearest = sqnrOf(n.graph, wide(false), all.first(8), all.last(4));
  EXPECT_GT(sqnrOf(n.graph, wide(true), all.first(8), all.last(4)), nearest + 2);
}

INSTANTIATE_TEST_SUITE_P(Layers, FitWeights, testing::ValuesIn(kLayers),
                         [](const auto& param) { return std::string(param.param.name); });

/// The int8 constants of a quantized graph, in order.
std::vector<std::vector<int8_t>> weightsOf(const ir::Graph& graph) {
  std::vector<std::vector<int8_t>> result;
  for (const ir::Node* node : graph.nodes()) {
    if (node->operands().empty() || !node->operands()[0] || !node->operands()[0]->isConstant() ||
        node->operands()[0]->dtype() != DType::Int8)
      continue;
    const auto codes = node->operands()[0]->constant().as<int8_t>();
    result.emplace_back(codes.begin(), codes.end());
  }
  return result;
}

TEST(FitWeights, LayersThatShareAWeightShareItsCodes) {
  Network n;
  Value* x = n.input({1, 64, 16});
  Value* weight = n.constant({16, 16}, -1, 1);
  Value* once = n.make<aten::Linear>(x, weight, nullptr);
  n.done(n.make<aten::Linear>(n.make<aten::Tanh>(once), weight, nullptr));
  Options options;
  options.fitWeights = true;
  const auto quantized = require(quantize(n.graph.clone(), options, smoothSamples({1, 64, 16}, 4)));
  const auto weights = weightsOf(quantized.graph);
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights[0], weights[1]);
}

/// The results of a quantized network of two layers whose weights are equal: one constant, or one each.
Tensor resultOfTwoLayers(Value* (*build)(Network&, Value* x, Value* first, Value* second), bool shared) {
  const Shape input{1, 16, 12, 12};
  Network n;
  Value* x = n.input(input);
  Value* weight = n.constant({4, 16, 3, 3}, -1, 0.8f);
  n.done(build(n, x, weight, shared ? weight : n.constant({4, 16, 3, 3}, -1, 0.8f)));
  Options options;
  options.fitWeights = options.correctBiases = true;
  const auto samples = smoothSamples(input, 8);
  const auto quantized = require(quantize(n.graph.clone(), options, samples));
  return require(aten::execute(quantized.graph, samples[0]))[0];
}

TEST(FitWeights, ATransposedConvolutionDoesNotShareTheCodesOfAConvolution) {
  const auto build = [](Network& n, Value* x, Value* first, Value* second) {
    const Ints one{1, 1}, none{0, 0};
    x = n.relu(n.make<aten::Conv2d>(x, first, nullptr, one, one, one, 1));
    return n.make<aten::ConvTranspose2dInput>(x, second, nullptr, one, one, none, 1, one);
  };
  EXPECT_EQ(resultOfTwoLayers(build, true), resultOfTwoLayers(build, false));
}

TEST(FitWeights, LayersOfOneWeightWithOtherGroupsHaveTheirOwnBiases) {
  const auto build = [](Network& n, Value* x, Value* first, Value* second) {
    const Ints one{1, 1};
    Value* whole = n.make<aten::Conv2d>(x, first, nullptr, one, one, one, 1);
    Value* twice = n.make<aten::Cat>(std::vector<Value*>{n.relu(x), x}, int64_t{1});
    return n.make<aten::AddTensor>(n.make<aten::Conv2d>(twice, second, nullptr, one, one, one, 2), whole);
  };
  EXPECT_EQ(resultOfTwoLayers(build, true), resultOfTwoLayers(build, false));
}

TEST(FitWeights, TooFewRowsAndTransposedLayersAreRoundedToNearest) {
  Network n;
  Value* x = n.make<aten::Linear>(n.input({1, 64}), n.constant({32, 64}, -1, 1), nullptr);
  x = n.make<aten::View>(x, Ints{1, 2, 4, 4});
  n.done(n.make<aten::ConvTranspose2dInput>(x, n.constant({2, 3, 2, 2}, -1, 1), nullptr, Ints{2, 2},
                                            Ints{0, 0}, Ints{0, 0}, 1, Ints{1, 1}));
  const auto samples = smoothSamples({1, 64}, 8);
  Options nearest, fitted;
  fitted.fitWeights = true;
  EXPECT_EQ(weightsOf(quantize(n.graph.clone(), nearest, samples)->graph),
            weightsOf(quantize(n.graph.clone(), fitted, samples)->graph));
}

/// Scale and zero point of the program's input.
std::pair<double, int64_t> inputCodes(const ir::Graph& graph, std::span<const Sample> samples,
                                      Options options) {
  options.rangeMargin = true;
  const auto quantized = quantize(graph.clone(), options, samples);
  const auto nodes = quantizes(quantized->graph);
  return {nodes.front().scale(), nodes.front().zeroPoint()};
}

Tensor filled(const Shape& shape, const std::vector<float>& values) {
  return Tensor::from(shape, values);
}

TEST(RangeMargin, LeavesRoomForOtherSamples) {
  Network n;
  n.done(n.make<aten::Neg>(n.input({1, 3})));
  // Largest values 1, 2 and 3 (deviation 1), smallest always 0.25.
  std::vector<Sample> samples;
  for (float top : {1.0f, 2.0f, 3.0f}) samples.push_back({filled({1, 3}, {0.25f, 0.5f, top})});
  const std::span<const Sample> all(samples);
  Options options;
  options.precision = Precision::Int16x8;
  EXPECT_NEAR(inputCodes(n.graph, all, options).first, (3.0 + 4.0) / 32767, 1e-7);
  EXPECT_NEAR(inputCodes(n.graph, all.last(1), options).first, 3.0 / 32767, 1e-7);  // no deviation known
  options.observer = ObserverKind::MinMax;                                          // explicitly requested
  EXPECT_NEAR(inputCodes(n.graph, all, options).first, 3.0 / 32767, 1e-7);
  options.precision = Precision::Int8;
  options.observer = ObserverKind::Histogram;
  EXPECT_NEAR(inputCodes(n.graph, all, options).first, (3.0 + 2.0) / 255, 1e-4);
  EXPECT_EQ(inputCodes(n.graph, all, options).second, -128);  // no margin below 0, where no values were
}

TEST(RangeMargin, DoesNotExceedTheRangeOfAnOperator) {
  Network n;
  Value* x = n.make<aten::Sigmoid>(n.input({1, 3}));
  n.done(n.make<aten::View>(x, Ints{3}));
  std::vector<Sample> samples;
  for (float top : {0.0f, 2.0f, 6.0f}) samples.push_back({filled({1, 3}, {-2, -1, top})});
  Options options;
  options.rangeMargin = true;
  const auto quantized = quantize(n.graph.clone(), options, samples);
  const auto nodes = quantizes(quantized->graph);
  ASSERT_GE(nodes.size(), 2u);
  EXPECT_NEAR(nodes[1].scale(), 1.0 / 255, 1e-6);
}

TEST(RangeMargin, ClampedValuesNeedNoCodes) {
  Network n;
  Value* x = n.make<aten::View>(n.input({1, 3}), Ints{3});
  n.done(n.make<aten::ClampMin>(x, -2.0));
  const std::vector<Sample> samples{{filled({1, 3}, {-1e9f, -1, 3})}};
  EXPECT_NEAR(inputCodes(n.graph, samples, {}).first, 5.0 / 255, 1e-4);
}

}  // namespace
}  // namespace carina::quantize
