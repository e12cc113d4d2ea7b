// SPDX-License-Identifier: Apache-2.0
// The quantizer on small graphs: where it inserts nodes, shared ranges, folding, errors.
#include "quantize/quantize.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "aten/executor.hpp"
#include "quantize/annotate.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

Result<Quantized> quantized(Network& network, ObserverKind observer = ObserverKind::MinMax) {
  Sample sample;
  for (const Value* input : network.graph.inputs()) sample.push_back(ramp(input->shape(), -1, 2));
  Options options;
  options.observer = observer;
  return quantize(std::move(network.graph), options, std::array{sample});
}

Annotation annotated(const ir::Graph& graph) {
  return annotate(graph, assign(graph, {}), {});
}

TEST(Annotate, AClampAfterAComputationIsPartOfIt) {
  Network n;
  Value* conv = n.conv(n.input({1, 2, 4, 4}), 3);
  Value* relu = n.done(n.relu(conv));
  const Annotation annotation = annotated(n.graph);
  EXPECT_EQ(annotation.groups.size(), 2u);
  EXPECT_FALSE(annotation.groupOf(conv).has_value());
  EXPECT_TRUE(annotation.groupOf(relu).has_value());
}

TEST(Annotate, AClampWhoseInputOthersReadSharesItsRange) {
  Network n;
  Value* conv = n.conv(n.input({1, 2, 4, 4}), 3);
  Value* relu = n.relu(conv);
  n.done(n.make<aten::AddTensor>(relu, conv, int64_t{1}));
  const Annotation annotation = annotated(n.graph);
  EXPECT_EQ(annotation.groupOf(conv).value(), annotation.groupOf(relu).value());
}

TEST(Annotate, CatPoolAndReshapeShareOneRange) {
  Network n;
  Value* a = n.input({1, 2, 4, 4});
  Value* c = n.input({1, 3, 4, 4});
  const std::vector<Value*> parts{a, c};
  Value* cat = n.make<aten::Cat>(parts, int64_t{1});
  Value* pool = n.make<aten::MaxPool2d>(cat, Ints{2, 2}, Ints{2, 2}, Ints{0, 0}, Ints{1, 1}, false);
  n.done(n.make<aten::FlattenUsingInts>(pool, int64_t{1}, int64_t{-1}));
  const Annotation annotation = annotated(n.graph);
  ASSERT_EQ(annotation.groups.size(), 1u);
  EXPECT_EQ(annotation.groups[0].forms.size(), 5u);
}

TEST(Annotate, AveragesWithOneDivisorHaveTheirOwnRangeInInt8) {
  const auto groups = [](bool counted, const Ints& kernel, Precision precision) {
    Network n;
    n.done(n.make<aten::AvgPool2d>(n.input({1, 2, 80, 80}), kernel, kernel, Ints{1, 1}, false, counted,
                                   std::nullopt));
    quantize::Options options;
    options.precision = precision;
    return annotate(n.graph, assign(n.graph, options), options).groups.size();
  };
  EXPECT_EQ(groups(true, {4, 4}, Precision::Int8), 2u);
  EXPECT_EQ(groups(true, {4, 4}, Precision::Int16x8), 1u);
  EXPECT_EQ(groups(false, {4, 4}, Precision::Int8), 1u);  // windows at the edge are divided by less
  EXPECT_EQ(groups(true, {65, 2}, Precision::Int8), 1u);  // the sum takes more than one operation
  EXPECT_EQ(groups(true, {64, 65}, Precision::Int8), 1u);
}

/// h = tanh(W h + x) three times, starting from h = 0; only the last h is returned.
TEST(Annotate, StepsOfARecurrenceShareTheirRanges) {
  Network n;
  Value* weight = n.constant({4, 4}, -1, 1);
  Value* state = n.constant({1, 4}, 0, 0);
  std::vector<Value*> products, sums, states;
  for (int step = 0; step < 3; ++step) {
    products.push_back(n.make<aten::Linear>(state, weight, nullptr));
    sums.push_back(n.make<aten::AddTensor>(products.back(), n.input({1, 4}), int64_t{1}));
    states.push_back(state = n.make<aten::Tanh>(sums.back()));
  }
  n.done(state);
  const Annotation annotation = annotated(n.graph);
  for (const auto& values : {products, sums, states}) {
    EXPECT_EQ(annotation.groupOf(values[0]).value(), annotation.groupOf(values[1]).value());
    EXPECT_EQ(annotation.groupOf(values[0]).value(), annotation.groupOf(values[2]).value());
  }
  EXPECT_NE(annotation.groupOf(products[0]).value(), annotation.groupOf(sums[0]).value());
}

TEST(Annotate, OneLayerOfTwoInputsHasTwoRanges) {
  Network n;
  Value* weight = n.constant({4, 4}, -1, 1);
  Value* a = n.make<aten::Linear>(n.input({1, 4}), weight, nullptr);
  Value* b = n.make<aten::Linear>(n.input({1, 4}), weight, nullptr);
  n.done(n.make<aten::AddTensor>(a, b, int64_t{1}));
  const Annotation annotation = annotated(n.graph);
  EXPECT_NE(annotation.groupOf(a).value(), annotation.groupOf(b).value());
}

/// A moving average nearly equals its first observation, which must be neither a constant nor one tensor of a
/// group.
TEST(Quantize, MovingAveragesObserveAllTensorsOfAGroupTogether) {
  Network n;
  Value* x = n.input({1, 2, 4, 4});
  const std::vector<Value*> parts{n.constant({1, 1, 4, 4}, 0, 3), n.make<aten::ClampMin>(x, 1.0), x};
  n.done(n.make<aten::Cat>(parts, int64_t{1}));
  auto result = require(quantized(n, ObserverKind::MovingAverage));
  const auto nodes = quantizes(result.graph);
  ASSERT_FALSE(nodes.empty());
  EXPECT_EQ(nodes[0].scale(), static_cast<double>(4.0f / 255.0f));  // [-1, 2] of x, [0, 3] of the constant
}

TEST(Quantize, ParametersOfAConvolution) {
  Network n;
  n.done(n.conv(n.input({1, 2, 4, 4}), 3));
  auto result = require(quantized(n));
  const auto nodes = quantizes(result.graph);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].scale(), static_cast<double>(3.0f / 255.0f));  // the input's [-1, 2]
  EXPECT_EQ(nodes[0].zeroPoint(), -43);
  for (ir::Node* node : result.graph.nodes()) {
    const auto dequantize = ir::dynCast<aten::DequantizePerChannel>(node);
    if (!dequantize) continue;
    const auto scales = dequantize.scales()->constant().as<float>();
    ASSERT_EQ(scales.size(), 3u);
    if (dequantize.dtype() == DType::Int32) {
      EXPECT_LT(scales[0], 1e-3f);
    } else {
      const auto codes = dequantize.input()->constant().as<int8_t>();
      EXPECT_TRUE(std::all_of(codes.begin(), codes.end(), [](int8_t c) { return c >= -127; }));
      EXPECT_TRUE(
          std::any_of(codes.begin(), codes.begin() + 18, [](int8_t c) { return std::abs(c) == 127; }));
    }
  }
}

TEST(Annotate, OnlyTheLastOfAChainOfFunctionsHasARange) {
  Network n;
  Value* added = n.make<aten::AddScalar>(n.input({1, 8}), 0.5, int64_t{1});
  Value* root = n.make<aten::Rsqrt>(added);
  Value* whole = n.done(n.make<aten::Floor>(root));
  Options options;
  const Annotation int8 = annotate(n.graph, assign(n.graph, options), options);
  EXPECT_FALSE(int8.groupOf(added).has_value());
  EXPECT_TRUE(int8.groupOf(root).has_value()) << "floor reads codes";
  EXPECT_TRUE(int8.groupOf(whole).has_value());
}

TEST(Annotate, ScalingBeforeAProductHasNoRange) {
  Network n;
  Value* a = n.input({1, 4, 8});
  Value* scaled = n.make<aten::MulScalar>(a, 0.25);
  Value* negative = n.make<aten::MulScalar>(n.input({1, 8, 4}), -0.25);
  n.done(n.make<aten::Matmul>(scaled, negative));
  const Options options;
  const Annotation annotation = annotate(n.graph, assign(n.graph, options), options);
  EXPECT_FALSE(annotation.groupOf(scaled).has_value());
  EXPECT_TRUE(annotation.groupOf(negative).has_value()) << "changes the codes";
}

/// Whether the factor fits in 15 bits, up to float rounding of the scales.
bool isShort(double factor) {
  int exponent = 0;
  const double bits = std::ldexp(std::frexp(factor, &exponent), 15);
  return std::abs(bits - std::nearbyint(bits)) < 0x1p-6;
}

TEST(Quantize, RescalesOf48BitSumsHaveFifteenBits) {
  for (const bool perChannel : {false, true}) {
    Network n;
    Value* x = n.relu(n.conv(n.input({1, 3, 6, 6}), 4));
    Value* rows = n.make<aten::View>(x, Ints{1, 4, 36});
    Value* columns = n.make<aten::TransposeInt>(rows, int64_t{1}, int64_t{2});
    n.done(n.make<aten::Matmul>(rows, columns));
    Options options;
    options.precision = Precision::Int16x8;
    options.perChannelWeights = perChannel;
    const auto quantized = require(
        quantize(std::move(n.graph), options, std::vector<Sample>{{ramp({1, 3, 6, 6}, -1.3f, 2.1f)}}));
    std::vector<double> scales;
    std::vector<float> weights;
    for (const auto& q : quantizes(quantized.graph)) {
      if (scales.empty() || scales.back() != q.scale()) scales.push_back(q.scale());
    }
    ASSERT_EQ(scales.size(), 3u);  // the input, the values between, the product
    for (ir::Node* node : quantized.graph.nodes()) {
      const auto conv = ir::dynCast<aten::Conv2d>(node);
      if (!conv) continue;
      if (const auto one = ir::producerAs<aten::DequantizePerTensor>(conv.weight()))
        weights.push_back(static_cast<float>(one.scale()));
      else
        for (float s :
             ir::producerAs<aten::DequantizePerChannel>(conv.weight()).scales()->constant().as<float>())
          weights.push_back(s);
    }
    ASSERT_EQ(weights.size(), perChannel ? 4u : 1u);
    for (float weight : weights) EXPECT_TRUE(isShort(scales[0] * static_cast<double>(weight) / scales[1]));
    // The product of computed matrices is only shifted.
    const double shift = std::log2(scales[1] * scales[1] / scales[2]);
    EXPECT_NEAR(shift, std::nearbyint(shift), 1e-6);
  }
}

TEST(Quantize, TheSimulationStaysCloseToFloat) {
  Network n;
  Value* x = n.relu(n.conv(n.input({1, 2, 6, 6}), 4));
  n.done(n.conv(x, 2));
  const ir::Graph source = n.graph.clone();
  auto result = require(quantized(n));
  const std::vector<Tensor> inputs{ramp({1, 2, 6, 6}, -1, 2)};
  const auto expected = require(aten::execute(source, inputs));
  const auto actual = require(aten::execute(result.graph, inputs));
  Sqnr sqnr;
  sqnr.add(expected[0], actual[0]);
  EXPECT_GT(sqnr.decibels(), 30);
}

TEST(Quantize, BatchNormFoldingKeepsTheFunction) {
  Network n;
  Value* x = n.conv(n.input({1, 2, 5, 5}), 3);
  x = n.make<aten::BatchNorm>(x, n.constant({3}, 0.5f, 2), n.constant({3}, -1, 1), n.constant({3}, -1, 1),
                              n.constant({3}, 0.5f, 3), false, 0.1, 1e-5, false);
  x = n.make<aten::BatchNorm>(n.relu(x), nullptr, nullptr, n.constant({3}, -1, 1), n.constant({3}, 0.5f, 3),
                              false, 0.1, 1e-5, false);
  n.done(x);
  const std::vector<Tensor> inputs{ramp({1, 2, 5, 5}, -1, 2)};
  const auto before = require(aten::execute(n.graph, inputs));
  ASSERT_TRUE(foldBatchNorms(n.graph).ok());
  for (ir::Node* node : n.graph.nodes()) EXPECT_FALSE(ir::isa<aten::BatchNorm>(node));
  const auto after = require(aten::execute(n.graph, inputs));
  for (int64_t i = 0; i < before[0].numElements(); ++i) {
    EXPECT_NEAR(before[0].realAt(i), after[0].realAt(i), 1e-4);
  }
}

TEST(Quantize, FoldingIntoATransposedConvolution) {
  Network n;
  Value* x = n.make<aten::ConvTranspose2dInput>(n.input({1, 4, 3, 3}), n.constant({4, 2, 2, 2}, -1, 1),
                                                nullptr, Ints{2, 2}, Ints{0, 0}, Ints{0, 0}, 2, Ints{1, 1});
  n.done(n.make<aten::BatchNorm>(x, n.constant({4}, 0.5f, 2), nullptr, n.constant({4}, -1, 1),
                                 n.constant({4}, 0.5f, 3), false, 0.1, 1e-5, false));
  const std::vector<Tensor> inputs{ramp({1, 4, 3, 3}, -1, 2)};
  const auto before = require(aten::execute(n.graph, inputs));
  ASSERT_TRUE(foldBatchNorms(n.graph).ok());
  const auto after = require(aten::execute(n.graph, inputs));
  for (int64_t i = 0; i < before[0].numElements(); ++i) {
    EXPECT_NEAR(before[0].realAt(i), after[0].realAt(i), 1e-4);
  }
}

TEST(Quantize, BatchNormFoldingChecksTheNormsChannels) {
  Network n;  // no batch dimension: the norm's channels are the convolution's rows, also three of them
  Value* x = n.make<aten::Conv2d>(n.input({2, 3, 5}), n.constant({3, 2, 1, 1}, -1, 0.5f), nullptr, Ints{1, 1},
                                  Ints{0, 0}, Ints{1, 1}, 1);
  n.done(n.make<aten::BatchNorm>(x, n.constant({3}, 0.5f, 2), nullptr, n.constant({3}, -1, 1),
                                 n.constant({3}, 0.5f, 3), false, 0.1, 1e-5, false));
  const std::vector<Tensor> inputs{ramp({2, 3, 5}, -1, 2)};
  const auto before = require(aten::execute(n.graph, inputs));
  ASSERT_TRUE(foldBatchNorms(n.graph).ok());
  const auto after = require(aten::execute(n.graph, inputs));
  for (int64_t i = 0; i < before[0].numElements(); ++i) {
    EXPECT_NEAR(before[0].realAt(i), after[0].realAt(i), 1e-4);
  }
}

/// LevIT's layers: linear over [N, tokens, channels], normed as [N * tokens, channels] or [N, channels,
/// tokens].
TEST(Quantize, BatchNormFoldingThroughShapesAndOrders) {
  Network n;
  const auto normed = [&](Value* x) {
    return n.make<aten::BatchNorm>(x, n.constant({4}, 0.5f, 2), nullptr, n.constant({4}, -1, 1),
                                   n.constant({4}, 0.5f, 3), false, 0.1, 1e-5, false);
  };
  Value* x = n.make<aten::Linear>(n.input({2, 4, 3}), n.constant({4, 3}, -1, 1), nullptr);
  x = normed(n.make<aten::FlattenUsingInts>(x, int64_t{0}, int64_t{1}));
  x = n.make<aten::View>(x, Ints{2, 4, 4});
  x = n.make<aten::Linear>(x, n.constant({4, 4}, -1, 1), n.constant({4}, -1, 1));
  x = normed(n.make<aten::TransposeInt>(x, int64_t{1}, int64_t{2}));
  const std::vector<Tensor> inputs{ramp({2, 4, 3}, -1, 2)};
  // The third norm's channels are the tokens: it cannot be folded into weights.
  n.done(normed(n.make<aten::TransposeInt>(n.make<aten::Linear>(x, n.constant({4, 4}, -1, 1), nullptr),
                                           int64_t{0}, int64_t{0})));
  const auto before = require(aten::execute(n.graph, inputs));
  ASSERT_TRUE(foldBatchNorms(n.graph).ok());
  size_t depthwise = 0;
  for (ir::Node* node : n.graph.nodes()) depthwise += ir::isa<aten::Convolution>(node) ? 1 : 0;
  EXPECT_EQ(depthwise, 1u);
  const auto after = require(aten::execute(n.graph, inputs));
  for (int64_t i = 0; i < before[0].numElements(); ++i) {
    EXPECT_NEAR(before[0].realAt(i), after[0].realAt(i), 1e-4);
  }
}

TEST(Quantize, SmallWeightsOfLargeInputsKeepTheirResolution) {
  Network n;
  Value* x = n.input({3, 8});
  n.done(n.make<aten::Linear>(x, n.constant({5, 8}, -1e-6F, 1e-6F), n.constant({5}, -1, 1)));
  const Tensor sample = ramp({3, 8}, -1e6F, 1e6F);
  auto result = require(quantize(std::move(n.graph), {}, {{{sample}}}));
  const auto expected = require(aten::execute(*result.reference, {{sample}}));
  const auto actual = require(aten::execute(result.graph, {{sample}}));
  Sqnr sqnr;
  sqnr.add(expected[0], actual[0]);
  EXPECT_GT(sqnr.decibels(), 30);
}

TEST(Quantize, CodesStayInTheDomainOfTheirReader) {
  for (const Precision precision : {Precision::Int8, Precision::Int16x8}) {
    for (const auto& [low, high] : {std::pair(-0.9996F, 0.9971F), {-1.0F, 1.0F}, {0.0F, 1.0F}}) {
      Network n;
      Value* x = n.input({1, 101});
      n.done(n.make<aten::Acos>(x));
      Options options;
      options.precision = precision;
      options.observer = ObserverKind::MinMax;
      auto result = require(quantize(std::move(n.graph), options, {{{ramp({1, 101}, low, high)}}}));
      const auto q = quantizes(result.graph).front();
      const double lowest = static_cast<double>(q.quantMin() - q.zeroPoint()) * q.scale();
      const double highest = static_cast<double>(q.quantMax() - q.zeroPoint()) * q.scale();
      EXPECT_GE(lowest, -1);
      EXPECT_LE(highest, 1);
      EXPECT_GE(highest, 0.99);
    }
  }
}

/// acos(1) is 0, but 0.125 at the next 8-bit code.
TEST(Quantize, EndsOfADomainAreRepresentable) {
  for (const auto& [low, high] :
       {std::pair(-1.0F, 1.0F), {0.0F, 1.0F}, {-1.0F, 0.0F}, {-0.1F, 1.0F}, {-1.0F, 0.3F}}) {
    Network n;
    n.done(n.make<aten::Acos>(n.input({1, 101})));
    const Tensor sample = ramp({1, 101}, low, high);
    auto result = require(quantize(std::move(n.graph), {}, {{{sample}}}));
    const auto actual = require(aten::execute(result.graph, {{sample}}));
    for (int64_t i = 0; i < 101; ++i) {
      const double x = sample.realAt(i);
      if (std::abs(x) < 1) continue;
      EXPECT_NEAR(actual[0].realAt(i), std::acos(x), 0.02) << x;
    }
  }
}

TEST(Quantize, ScaledValuesKeepTheirCodes) {
  for (const Precision precision : {Precision::Int8, Precision::Int16x8}) {
    Network n;
    Value* x = n.conv(n.input({1, 2, 4, 4}), 3);
    Value* y = n.make<aten::DivScalar>(x, 3.0);
    n.done(n.make<aten::AddTensor>(y, x, int64_t{1}));
    Options options;
    options.precision = precision;
    options.rangeMargin = true;
    const auto result = require(
        quantize(std::move(n.graph), options, {{{ramp({1, 2, 4, 4}, -1, 1)}, {ramp({1, 2, 4, 4}, -2, 1)}}}));
    const auto nodes = quantizes(result.graph);
    ASSERT_EQ(nodes.size(), 4u);  // input, convolution, quotient, sum
    EXPECT_EQ(nodes[2].zeroPoint(), nodes[1].zeroPoint());
    EXPECT_NEAR(nodes[2].scale() * 3 / nodes[1].scale(), 1, 1e-6);
  }
}

TEST(Quantize, AGraphWithQuantizeNodesKeepsThem) {
  Network n;
  n.done(n.conv(n.input({1, 2, 4, 4}), 3));
  auto first = require(quantized(n));
  const auto before = quantizes(first.graph).size();
  auto second = require(quantize(std::move(first.graph), {}, {}));
  EXPECT_EQ(quantizes(second.graph).size(), before);
  EXPECT_EQ(second.report.tensors.size(), before);
}

TEST(Quantize, Refusals) {
  Network n;
  n.done(n.conv(n.input({1, 2, 4, 4}), 3));
  const ir::Graph copy = n.graph.clone();
  EXPECT_FALSE(quantize(copy.clone(), {}, {}).ok());  // no samples
  Network bad;
  Value* weight = bad.graph.addConstant(ramp({3, 2, 1, 1}, NAN, 1));
  bad.done(bad.make<aten::Conv2d>(bad.input({1, 2, 4, 4}), weight, nullptr, Ints{1, 1}, Ints{0, 0},
                                  Ints{1, 1}, 1));
  EXPECT_NE(errorOf(quantized(bad)).find("NaN"), std::string::npos);
}

TEST(Samples, FromArrays) {
  Network n;
  n.done(n.relu(n.input({1, 3})));
  const auto samples = [&](const NamedTensors& arrays) { return samplesFromArrays(n.graph, arrays); };
  EXPECT_EQ(samples({{"calib0", ramp({5, 1, 3}, 0, 1)}})->size(), 5u);
  EXPECT_EQ(samples({{"calib0", ramp({5, 3}, 0, 1)}})->size(), 5u);
  EXPECT_EQ((*samples({{"calib0", ramp({5, 3}, 0, 1)}}))[2][0].shape(), (Shape{1, 3}));
  EXPECT_EQ(samples({{"in0", ramp({1, 3}, 0, 1)}})->size(), 1u);
  EXPECT_FALSE(samples({{"in1", ramp({1, 3}, 0, 1)}}).ok());
  EXPECT_FALSE(samples({{"calib0", ramp({5, 4}, 0, 1)}}).ok());
  EXPECT_FALSE(samples({{"calib0", ramp({5, 3}, NAN, 1)}}).ok());
  const std::string more = errorOf(samples({{"calib0", ramp({5, 3}, 0, 1)}, {"calib1", ramp({5, 3}, 0, 1)}}));
  EXPECT_NE(more.find("calib1 does not belong to any input"), std::string::npos) << more;
  EXPECT_FALSE(samples({{"calib0", ramp({5, 3}, 0, 1)}, {"calib", ramp({5, 3}, 0, 1)}}).ok());
}

}  // namespace
}  // namespace carina::quantize
