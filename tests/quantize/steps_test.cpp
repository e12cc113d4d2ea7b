// SPDX-License-Identifier: Apache-2.0
// Integers have codes where values are rounded to integers or converted to them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "aten/executor.hpp"
#include "quantize/quantize.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

/// Expects that codes of the graph's dequantize nodes represent all integers from `low` to `high`.
void expectIntegers(const ir::Graph& graph, int low, int high) {
  int found = 0;
  for (const ir::Node* node : graph.nodes()) {
    const auto codes = ir::dynCast<aten::DequantizePerTensor>(node);
    if (!codes) continue;
    ++found;
    const auto scale = static_cast<float>(codes.scale());
    for (int number = low; number <= high; ++number) {
      const int64_t code = std::lround(static_cast<float>(number) / scale);
      EXPECT_EQ(static_cast<float>(code) * scale, static_cast<float>(number)) << node->result()->name;
      EXPECT_LE(code + codes.zeroPoint(), codes.quantMax());
      EXPECT_GE(code + codes.zeroPoint(), codes.quantMin());
    }
  }
  EXPECT_GT(found, 0);
}

Sample valuesBetween(float low, float high) {
  std::vector<float> values(16);
  for (size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * static_cast<float>(i) / 15;
  return {Tensor::from(Shape{1, 16}, values)};
}

/// The scale of x where it and what is made of it are rounded `count` times.
double scaleRead(size_t count, float most) {
  Network n;
  Value* x = n.input({1, 16});
  std::vector<Value*> results(count);
  for (Value*& result : results) result = n.make<aten::Floor>(x);
  n.graph.setOutputs(results);
  const auto quantized = require(quantize(std::move(n.graph), {}, std::array{valuesBetween(0, most)}));
  return ir::cast<aten::QuantizePerTensor>(quantized.graph.inputs()[0]->uses()[0].node).scale();
}

TEST(Steps, DoNotAddUp) {
  EXPECT_EQ(scaleRead(12, 9), scaleRead(1, 9));
}

TEST(Steps, LeaveRangesOfFractions) {
  EXPECT_LT(scaleRead(1, 1e-30f), 1e-6);
}

struct StepCase {
  const char* name;
  float low, high;
  Precision precision;
};

class StepRanges : public testing::TestWithParam<StepCase> {};

TEST_P(StepRanges, HaveCodesForIntegers) {
  const StepCase& c = GetParam();
  Network n;
  n.done(n.make<aten::Floor>(n.input({1, 16})));
  Options options;
  options.precision = c.precision;
  const auto quantized =
      require(quantize(std::move(n.graph), options, std::array{valuesBetween(c.low, c.high)}));
  expectIntegers(quantized.graph, static_cast<int>(std::ceil(c.low)), static_cast<int>(std::floor(c.high)));
}

TEST_P(StepRanges, OfConversionsHaveCodesForIntegers) {
  const StepCase& c = GetParam();
  Network n;
  n.done(n.make<aten::ToDtype>(n.input({1, 16}), DType::Int32, false, false, std::nullopt));
  Options options;
  options.precision = c.precision;
  const auto quantized =
      require(quantize(std::move(n.graph), options, std::array{valuesBetween(c.low, c.high)}));
  expectIntegers(quantized.graph, static_cast<int>(std::ceil(c.low)), static_cast<int>(std::floor(c.high)));
}

TEST(Steps, StayWithinTheIntegersOfLimits) {
  Network n;
  n.done(n.make<aten::Trunc>(n.make<aten::Clamp>(n.make<aten::Neg>(n.input({1, 16})), -2.99, 8.99)));
  const Sample sample = valuesBetween(-20, 20);
  const auto quantized = require(quantize(std::move(n.graph), {}, std::array{sample}));
  const std::vector<Tensor> results = require(aten::execute(quantized.graph, sample));
  const auto wholes = results[0].as<float>();
  EXPECT_EQ(*std::max_element(wholes.begin(), wholes.end()), 8);
  EXPECT_EQ(*std::min_element(wholes.begin(), wholes.end()), -2);
}

INSTANTIATE_TEST_SUITE_P(Ranges, StepRanges,
                         testing::Values(StepCase{"positive", 0, 9, Precision::Int8},
                                         StepCase{"both", -2.7f, 5.1f, Precision::Int8},
                                         StepCase{"many", -80, 99, Precision::Int8},
                                         StepCase{"positive_in_16_bits", 0, 9, Precision::Int16x8},
                                         StepCase{"both_in_16_bits", -2.7f, 5.1f, Precision::Int16x8},
                                         StepCase{"many_in_16_bits", -80, 99, Precision::Int16x8}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace carina::quantize
