// SPDX-License-Identifier: Apache-2.0
// Arguments of sines over many periods, of logarithms of small values, indices beyond 256 and positions
// between elements have 16-bit codes in int8 networks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "quantize/quantize.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

using testing::ElementsAre;

/// The types of all codes that are computed, in order.
std::vector<DType> typesOfCodes(const ir::Graph& graph) {
  std::vector<DType> types;
  for (const ir::Node* node : graph.nodes()) {
    const auto codes = ir::dynCast<aten::QuantizePerTensor>(node);
    if (codes && !codes.input()->isConstant()) types.push_back(codes.dtype());
  }
  return types;
}

/// The types of the codes of relu(sin(t * f)) for t up to `most`: of t, t * f, the sine and relu's result.
std::vector<DType> typesFor(float most, const Options& options = {}) {
  Network n;
  Value* time =
      n.make<aten::ToDtype>(n.input({1, 4}, DType::Int64), DType::Float32, false, false, std::nullopt);
  Value* phase = n.make<aten::MulTensor>(time, n.constant({1, 4}, 0.1f, 1));
  n.done(n.relu(n.make<aten::Neg>(n.make<aten::Sin>(phase))));
  const Tensor times = Tensor::from(Shape{1, 4}, std::vector<int64_t>{0, 1, 2, static_cast<int64_t>(most)});
  const auto quantized = require(quantize(std::move(n.graph), options, std::array{Sample{times}}));
  return typesOfCodes(quantized.graph);
}

constexpr DType kNarrow = DType::Int8, kWide = DType::Int16;

TEST(Phases, OfMoreThanTwoPeriodsAndWhatComputesThemHave16Bits) {
  EXPECT_THAT(typesFor(1000), ElementsAre(kWide, kWide, kWide, kNarrow, kNarrow));
  EXPECT_THAT(typesFor(10), ElementsAre(kNarrow, kNarrow, kNarrow));
}

TEST(Phases, AreLeftToRulesThatNameTheirOperators) {
  Options options;
  Rule& rule = options.rules.emplace_back();
  rule.pattern = "*";
  rule.overrides.precision = Precision::Int8;
  EXPECT_THAT(typesFor(1000, options), ElementsAre(kNarrow, kNarrow, kNarrow));
}

/// The types of the codes of x, y, the product and its logarithm, for products from 0 to 4.
std::vector<DType> typesForLogarithm(double added) {
  Network n;
  Value* product = n.make<aten::MulTensor>(n.input({1, 4}), n.input({1, 4}));
  n.graph.setOutputs({n.make<aten::Log>(n.make<aten::AddScalar>(product, added, int64_t{1}))});
  const Tensor x = Tensor::from(Shape{1, 4}, std::vector<float>{0, 0.1f, 1, 2});
  const auto quantized = require(quantize(std::move(n.graph), {}, std::array{Sample{x, x}}));
  return typesOfCodes(quantized.graph);
}

TEST(Logarithms, OfSmallValuesHave16BitArguments) {
  const std::vector<DType> fine = typesForLogarithm(1e-3), coarse = typesForLogarithm(1);
  EXPECT_THAT(fine, testing::Contains(kWide));
  EXPECT_THAT(coarse, testing::Each(kNarrow));
}

/// The types of the codes of -x, of floor(-x), which is an index, and of the fraction.
TEST(Positions, BetweenElementsHave16Bits) {
  Network n;
  Value* position = n.make<aten::Neg>(n.input({1, 4}));
  Value* row = n.make<aten::Floor>(position);
  Value* index = n.make<aten::ToDtype>(row, DType::Int64, false, false, std::nullopt);
  n.graph.setOutputs({index, n.make<aten::SubTensor>(position, row, int64_t{1})});
  const Tensor x = Tensor::from(Shape{1, 4}, std::vector<float>{-0.5f, -2, -3.25f, -9.5f});
  const auto quantized = require(quantize(std::move(n.graph), {}, std::array{Sample{x}}));
  EXPECT_THAT(typesOfCodes(quantized.graph), testing::Each(kWide));
}

/// The scales of the codes of floor(x), of floor(x) * width, and of what is converted to an index.
std::vector<double> scalesOfIndex(float most, double width) {
  Network n;
  Value* row = n.make<aten::Floor>(n.make<aten::Neg>(n.input({1, 4})));
  Value* index = n.make<aten::AddTensor>(n.make<aten::MulScalar>(row, width), n.constant({1, 4}, 1, 4));
  n.graph.setOutputs({n.make<aten::ToDtype>(index, DType::Int64, false, false, std::nullopt)});
  const Tensor rows = Tensor::from(Shape{1, 4}, std::vector<float>{-0.5f, -2, -3.25f, -most});
  const auto quantized = require(quantize(std::move(n.graph), {}, std::array{Sample{rows}}));
  std::vector<double> scales;
  for (const ir::Node* node : quantized.graph.nodes()) {
    const auto codes = ir::dynCast<aten::QuantizePerTensor>(node);
    if (codes && !codes.input()->isConstant() && !codes.input()->isInput()) scales.push_back(codes.scale());
  }
  return scales;
}

TEST(Indices, HaveCodesThatRepresentThem) {
  for (const auto& [most, width] : {std::pair(9.5f, 12.0), std::pair(31.5f, 40.0)}) {
    for (const double scale : scalesOfIndex(most, width)) {
      EXPECT_LE(scale, 1);
      // One over an integer, or `width` over one.
      const double steps = 1 / scale;
      EXPECT_TRUE(std::abs(steps - std::round(steps)) < 1e-4 ||
                  std::abs(steps * width - std::round(steps * width)) < 1e-4)
          << steps;
    }
  }
}

}  // namespace
}  // namespace carina::quantize
