// SPDX-License-Identifier: Apache-2.0
// Prequantized networks in which operators have unquantized inner values: these get 16-bit codes.
#include "quantize/inside.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "aten/executor.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

constexpr double kScale = 0.02;

struct Inside : Network {
  DType type = DType::Int8;  // of the network's codes

  Value* both(Value* x, double scale = kScale) {
    if (type == DType::Int16) scale /= 256;
    Value* q = make<aten::QuantizePerTensor>(x, scale, 0, integerMin(type), integerMax(type), type);
    return dequantized(q, scale);
  }
  Value* dequantized(Value* q, double scale) {
    return make<aten::DequantizePerTensor>(q, scale, 0, integerMin(type), integerMax(type), type,
                                           std::nullopt);
  }
  /// A decomposed RMS norm between quantized ends.
  void rmsNorm() {
    Value* x = both(input({4, 16}));
    Value* square = make<aten::MulTensor>(x, x);
    Value* mean = make<aten::MeanDim>(square, Ints{1}, true, std::nullopt);
    Value* inverse = make<aten::Rsqrt>(make<aten::AddScalar>(mean, 1e-6, int64_t{1}));
    done(both(make<aten::MulTensor>(x, inverse)));
  }
  std::unordered_set<const ir::Node*> operators() const {
    std::unordered_set<const ir::Node*> found;
    for (const ir::Node* node : graph.nodes()) {
      if (!ir::isa<aten::QuantizePerTensor>(node) && !ir::isa<aten::DequantizePerTensor>(node) &&
          !ir::isa<aten::DequantizePerChannel>(node))
        found.insert(node);
    }
    return found;
  }
};

std::vector<aten::QuantizePerTensor> wideQuantizes(const ir::Graph& graph) {
  std::vector<aten::QuantizePerTensor> found;
  for (const auto& q : quantizes(graph)) {
    if (q.dtype() == DType::Int16) found.push_back(q);
  }
  return found;
}

/// The largest change of the graph's first output.
double worstChange(Inside& network, const Tensor& input, std::span<const Sample> samples) {
  const auto before = require(aten::execute(network.graph, {&input, 1}));
  require(quantizeInside(network.graph, network.operators(), Settings{}, samples));
  EXPECT_EQ(network.graph.inputs().size(), 1u);
  const auto after = require(aten::execute(network.graph, {&input, 1}));
  double worst = 0;
  for (int64_t i = 0; i < before[0].numElements(); ++i)
    worst = std::max(worst, std::abs(before[0].realAt(i) - after[0].realAt(i)));
  return worst;
}

TEST(QuantizeInside, InnerValuesGetWideCodesAndTheEndsKeepTheirs) {
  for (const bool calibrated : {false, true}) {
    Inside n;
    n.rmsNorm();
    const Tensor input = ramp({4, 16}, -2.5f, 2.5f);
    const std::vector<Sample> samples(calibrated ? 1 : 0, Sample{input});
    EXPECT_LE(worstChange(n, input, samples), 1.001 * kScale);
    size_t narrow = 0;
    for (const auto& q : quantizes(n.graph)) {
      if (q.dtype() != DType::Int8) continue;
      ++narrow;
      EXPECT_EQ(q.scale(), kScale);
    }
    EXPECT_EQ(narrow, 2u);
    EXPECT_GE(wideQuantizes(n.graph).size(), 3u);  // the input's codes widened, mean square, reciprocal root
  }
}

/// Between 16-bit ends, 16-bit inner values would be off by several codes.
TEST(QuantizeInside, BetweenInt16CodesInnerValuesHaveInt32Codes) {
  Inside n;
  n.type = DType::Int16;
  n.rmsNorm();
  const Tensor input = ramp({4, 16}, -2.5f, 2.5f);
  EXPECT_LE(worstChange(n, input, {}), 1.001 * kScale / 256);
  size_t wide = 0;
  for (const auto& q : quantizes(n.graph)) {
    if (q.dtype() == DType::Int16) {
      EXPECT_EQ(q.scale(), kScale / 256);  // the network's codes, and values that reuse them
      continue;
    }
    EXPECT_EQ(q.dtype(), DType::Int32);
    int exponent = 0;
    EXPECT_EQ(std::frexp(q.scale(), &exponent), 0.5);
    ++wide;
  }
  EXPECT_GE(wide, 2u);  // mean square and reciprocal root
}

/// exp over all int16 codes reaches far beyond the codes after it.
TEST(QuantizeInside, FastGrowingFunctionsStayAtSixteenBits) {
  Inside n;
  n.type = DType::Int16;
  ir::Node* sigmoid = aten::Sigmoid::create(n.b, n.both(n.input({4}))).node();
  ir::Node* exp = aten::Exp::create(n.b, n.both(sigmoid->result())).node();
  n.done(n.both(exp->result()));
  EXPECT_TRUE(hasFunctionOf16Bits(std::array{sigmoid}));
  EXPECT_FALSE(hasFunctionOf16Bits(std::array{exp}));
}

TEST(QuantizeInside, CodesOfTheNetworkAreWidenedExactly) {
  Inside n;
  n.rmsNorm();
  ASSERT_TRUE(quantizeInside(n.graph, n.operators(), Settings{}, {}).ok());
  size_t widened = 0;
  for (const auto& q : wideQuantizes(n.graph)) {
    if (!ir::producerAs<aten::DequantizePerTensor>(q.input())) continue;
    ++widened;
    EXPECT_EQ(q.scale(), kScale / 128);
    EXPECT_EQ(q.zeroPoint(), 0);
  }
  EXPECT_GT(widened, 0u);
}

/// A linear layer with float weights, followed by operators that prevent it from becoming one operation.
void addLayer(Inside& n, Tensor weight) {
  Value* x = n.both(n.input({4, 8}));
  Value* y = n.make<aten::Linear>(x, n.graph.addConstant(std::move(weight)), n.constant({6}, -1, 1));
  n.done(n.both(n.make<aten::MulTensor>(y, n.make<aten::Sigmoid>(y)), 0.05));
}

TEST(QuantizeInside, FloatWeightsKeepMoreThanEightBits) {
  Inside n;
  addLayer(n, ramp({6, 8}, -0.7f, 0.9f));
  const Tensor weight = ramp({6, 8}, -0.7f, 0.9f);
  ASSERT_TRUE(quantizeInside(n.graph, n.operators(), Settings{}, {}).ok());
  const ir::Node* layer = nullptr;
  for (const ir::Node* node : n.graph.nodes()) {
    if (ir::isa<aten::Linear>(node)) layer = node;
  }
  ASSERT_TRUE(layer);
  const auto grid = ir::producerAs<aten::DequantizePerChannel>(layer->operands()[1]);
  ASSERT_TRUE(grid);
  ASSERT_EQ(grid.input()->shape(), (Shape{12, 8}));
  for (int64_t i = 0; i < 48; ++i) {
    const auto part = [&](int64_t at) {
      return static_cast<double>(grid.input()->constant().integerAt(at)) *
             grid.scales()->constant().realAt(at / 8);
    };
    EXPECT_NEAR(part(i) + part(48 + i), weight.realAt(i), 0.9 / 127 / 254);
  }
}

TEST(QuantizeInside, ZeroAndNaNWeights) {
  Inside zero;
  addLayer(zero, Tensor::zeros(DType::Float32, {6, 8}));
  EXPECT_LE(worstChange(zero, ramp({4, 8}, -2.5f, 2.5f), {}), 1.001 * 0.05);
  Inside n;
  Tensor weight = ramp({6, 8}, -0.7f, 0.9f);
  weight.mutableAs<float>()[7] = std::nanf("");
  addLayer(n, std::move(weight));
  EXPECT_NE(errorOf(quantizeInside(n.graph, n.operators(), Settings{}, {})).find("NaN"), std::string::npos);
}

TEST(QuantizeInside, QuantizedWeightsKeepTheirCodes) {
  Inside n;
  // The rows of two quantized matrices, concatenated in reverse order: the codes of both are kept.
  const auto codes = [&](int64_t step) {
    Tensor tensor = Tensor::uninitialized(DType::Int8, {3, 8});
    for (int64_t i = 0; i < 24; ++i) tensor.setIntegerAt(i, i * step % 101 - 50);
    return n.graph.addConstant(std::move(tensor));
  };
  Value* first = n.dequantized(codes(7), 0.01);
  Value* second = n.dequantized(codes(13), 0.03);
  Value* weight = n.make<aten::Cat>(std::vector<Value*>{second, first}, int64_t{0});
  Value* x = n.both(n.input({4, 8}));
  Value* y = n.make<aten::Linear>(x, weight, n.constant({6}, -1, 1));
  n.done(n.both(n.make<aten::MulTensor>(y, n.make<aten::Sigmoid>(y)), 0.05));
  EXPECT_LE(worstChange(n, ramp({4, 8}, -2.5f, 2.5f), {}), 1.001 * 0.05);
  const ir::Node* layer = nullptr;
  for (const ir::Node* node : n.graph.nodes()) {
    if (ir::isa<aten::Linear>(node)) layer = node;
  }
  ASSERT_TRUE(layer);
  const auto grid = ir::producerAs<aten::DequantizePerChannel>(layer->operands()[1]);
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid.input()->constant().integerAt(0), -50);
  EXPECT_EQ(grid.input()->constant().integerAt(1), 13 - 50);
  EXPECT_EQ(grid.input()->constant().integerAt(25), 7 - 50);
  EXPECT_FLOAT_EQ(static_cast<float>(grid.scales()->constant().realAt(0)), 0.03f);
  EXPECT_FLOAT_EQ(static_cast<float>(grid.scales()->constant().realAt(5)), 0.01f);
}

}  // namespace
}  // namespace carina::quantize
