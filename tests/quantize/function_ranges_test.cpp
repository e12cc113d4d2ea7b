// SPDX-License-Identifier: Apache-2.0
// int8 codes are spent only on values that readers distinguish; results of functions of int16 codes have
// codes for all of these.
#include <gtest/gtest.h>

#include "quantize/quantize.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

constexpr Shape::value_type kSize = 2001;

/// The range that the codes of the network's input cover if the input covers -100 to 100.
struct Reach {
  double low = 0, high = 0;
};
Reach reachOf(Network network, const Options& options = {}) {
  const std::vector<Sample> samples{{ramp({kSize}, -100, 100)}};
  const auto quantized = require(quantize(std::move(network.graph), options, samples));
  const auto q = quantizes(quantized.graph).front();
  EXPECT_TRUE(q.input()->isInput());
  return {q.scale() * static_cast<double>(q.quantMin() - q.zeroPoint()),
          q.scale() * static_cast<double>(q.quantMax() - q.zeroPoint())};
}

TEST(FlatEnds, BothEndsOfASigmoid) {
  Network n;
  n.done(n.make<aten::Sigmoid>(n.input({kSize})));
  const Reach reach = reachOf(std::move(n));
  EXPECT_NEAR(reach.low, -7, 0.3) << "a quarter of a code of 1 / 255";
  EXPECT_NEAR(reach.high, 7, 0.3);
}

TEST(FlatEnds, OneEndOfSilu) {
  Network n;
  n.done(n.make<aten::Silu>(n.input({kSize})));
  const Reach reach = reachOf(std::move(n));
  EXPECT_GT(reach.low, -10);
  EXPECT_LT(reach.low, -1);
  EXPECT_NEAR(reach.high, 100, 1);
}

TEST(FlatEnds, KeepsValuesThatAnotherReaderDistinguishes) {
  Network n;
  Value* x = n.input({kSize});
  Value* sigmoid = n.make<aten::Sigmoid>(x);
  n.done(n.make<aten::AddTensor>(x, sigmoid, int64_t{1}));
  const Reach reach = reachOf(std::move(n));
  EXPECT_NEAR(reach.low, -100, 1);
  EXPECT_NEAR(reach.high, 100, 1);
}

TEST(FlatEnds, CoversTheRangesOfTwoFunctions) {
  Network n;
  Value* x = n.input({kSize});
  Value* sigmoid = n.make<aten::Sigmoid>(x);
  Value* hard = n.make<aten::Hardtanh>(x, -30.0, 1.0);
  n.done(n.make<aten::AddTensor>(sigmoid, hard, int64_t{1}));
  EXPECT_LT(reachOf(std::move(n)).low, -29);
}

TEST(FlatEnds, ExplicitObserversAndSixteenBitsKeepTheirRanges) {
  const auto network = [] {
    Network n;
    n.done(n.make<aten::Sigmoid>(n.input({kSize})));
    return n;
  };
  Options minMax;
  minMax.observer = ObserverKind::MinMax;
  EXPECT_NEAR(reachOf(network(), minMax).high, 100, 1);
  Options wide;
  wide.precision = Precision::Int16x8;
  EXPECT_NEAR(reachOf(network(), wide).high, 100, 1);
}

/// The largest value that has a code at the output of a function of 16-bit codes.
template <typename Op>
double largestResult(float low, float high, const Options& options = {}) {
  Network n;
  n.done(n.make<Op>(n.input({kSize})));
  const std::vector<Sample> samples{{ramp({kSize}, low, high)}};
  const auto quantized = require(quantize(std::move(n.graph), options, samples));
  const auto q = quantizes(quantized.graph).back();
  return q.scale() * static_cast<double>(q.quantMax() - q.zeroPoint());
}

TEST(ResultsOfFunctions, HaveCodesForAllSixteenBitArguments) {
  Options wide;
  wide.precision = Precision::Int16x8;
  // The codes of the argument reach from -6 to 6.
  EXPECT_GE(largestResult<aten::Silu>(-6, 4, wide), 5.98);
  EXPECT_LE(largestResult<aten::Silu>(-6, 4, wide), 6.5);
  EXPECT_LE(largestResult<aten::Silu>(-6, 4), 4.5) << "int8 has no codes to spare";
}

TEST(ResultsOfFunctions, MayGainAFactorOfTwo) {
  Options wide;
  wide.precision = Precision::Int16x8;
  EXPECT_LE(largestResult<aten::Exp>(-6, 4, wide), 80) << "e^6 is 403, e^4 is 55";
}

}  // namespace
}  // namespace carina::quantize
