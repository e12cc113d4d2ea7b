// SPDX-License-Identifier: Apache-2.0
// Factors of normalisations whose rows may be (almost) zero.
#include "quantize/gains.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "aten/executor.hpp"
#include "quantize/quantize.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

constexpr double kEps = 1e-5;
constexpr Gain kNorm{true, kEps};

float factorOf(double deviation) {
  return static_cast<float>(1 / std::sqrt(deviation * deviation + kEps));
}

TEST(Gains, SilentRowsGetNoCodes) {
  GainObserver observer(256, kNorm);
  observer.observe(std::array{factorOf(0), factorOf(1), factorOf(2), factorOf(0.5), factorOf(0)});
  EXPECT_EQ(observer.range().max, factorOf(0.5));
  EXPECT_EQ(observer.range().min, factorOf(2));
  EXPECT_TRUE(kNorm.isIdle(factorOf(0)));
  EXPECT_TRUE(kNorm.isIdle(factorOf(1e-4)));
  EXPECT_FALSE(kNorm.isIdle(factorOf(1e-3)));
}

/// One quiet row among many is worth less than the precision of the others.
TEST(Gains, QuietRowsAreClippedIfThatCostsLess) {
  GainObserver observer(256, Gain{true, 1e-12});
  for (int i = 0; i < 1000; ++i) observer.observe(std::array{factorOf(1)});
  observer.observe(std::array{factorOf(0.003)});
  EXPECT_LT(observer.range().max, factorOf(0.003) / 2);
  EXPECT_GE(observer.range().max, factorOf(1));
}

TEST(Gains, AllRowsSilent) {
  GainObserver observer(256, kNorm);
  observer.observe(std::array{factorOf(0)});
  EXPECT_EQ(observer.range().max, factorOf(0));
}

/// Linear attention divides by a sum that may be 0; other quotients may be negative.
TEST(Gains, Quotients) {
  const Gain quotient{false, 1e-15};
  GainObserver observer(256, quotient);
  observer.observe(std::array{1e15F, 0.5F, 2.0F});
  EXPECT_EQ(observer.range().max, 2.0F);
  EXPECT_TRUE(quotient.isIdle(1e15F));
  observer.observe(std::array{-1.0F});
  EXPECT_EQ(observer.range().min, -1.0F);
  EXPECT_EQ(observer.range().max, 1e15F);
  EXPECT_FALSE(quotient.isIdle(-1.0F));
}

/// RMS norm of rows of which one is zero.
TEST(Gains, ANormKeepsTheOtherRows) {
  for (const Precision precision : {Precision::Int8, Precision::Int16x8}) {
    Network n;
    Value* x = n.input({4, 8});
    Value* mean = n.make<aten::MeanDim>(n.make<aten::MulTensor>(x, x), Ints{1}, true, std::nullopt);
    Value* gain = n.make<aten::Rsqrt>(n.make<aten::AddScalar>(mean, 1e-12, int64_t{1}));
    n.done(n.make<aten::MulTensor>(x, gain));
    Tensor input = ramp({4, 8}, -2, 2);
    for (int64_t i = 8; i < 16; ++i) input.mutableAs<float>()[static_cast<size_t>(i)] = 0;
    const ir::Graph source = n.graph.clone();
    Options options;
    options.precision = precision;
    options.rangeMargin = true;
    const auto result = require(quantize(std::move(n.graph), options, std::vector<Sample>{{input}, {input}}));
    const auto expected = require(aten::execute(source, std::array{input}));
    const auto actual = require(aten::execute(result.graph, std::array{input}));
    Sqnr sqnr;
    sqnr.add(expected[0], actual[0]);
    EXPECT_GT(sqnr.decibels(), precision == Precision::Int8 ? 35 : 60);  // 0 with the silent row's factor
  }
}

}  // namespace
}  // namespace carina::quantize
