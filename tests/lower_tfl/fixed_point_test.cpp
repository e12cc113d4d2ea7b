// SPDX-License-Identifier: Apache-2.0
// Fixed-point arithmetic against real numbers.
#include "lower_tfl/fixed_point.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace carina::lower_tfl {
namespace {

double q0(int32_t x) {
  return std::ldexp(x, -31);
}

TEST(FixedPoint, MultipliersAreNearest) {
  for (double real : {1.0, 0.5, 0.3, 1e-6, 123.4, 0.9999999999}) {
    const Multiplier m = quantizeMultiplier(real);
    EXPECT_GE(m.value, 1 << 30);
    EXPECT_NEAR(std::ldexp(m.value, m.shift - 31), real, real * 1e-9);
  }
  EXPECT_EQ(quantizeMultiplier(0).value, 0);
  EXPECT_EQ(quantizeMultiplier(1e-12).value, 0);
  EXPECT_EQ(quantizeMultiplier(INFINITY).shift, 31);
}

TEST(FixedPoint, RoundsHalvesAsGemmlowpDoes) {
  EXPECT_EQ(roundingDivide(3, 1), 2);  // away from zero
  EXPECT_EQ(roundingDivide(-3, 1), -2);
  EXPECT_EQ(highMul(1 << 30, 1), 1);  // half up
  EXPECT_EQ(highMul(-(1 << 30), 1), 0);
  EXPECT_EQ(highMul(INT32_MIN, INT32_MIN), INT32_MAX);
}

RC_GTEST_PROP(FixedPoint, MultiplyIsClose, (int32_t raw)) {
  const auto x = static_cast<int32_t>(raw >> 8);
  const Multiplier m = quantizeMultiplier(0.0123);
  RC_ASSERT(std::abs(multiply(x, m) - x * 0.0123) <= 1.01);
}

/// RESCALE with two roundings.
int64_t rescaled(int64_t x, const Multiplier& by) {
  const int shift = 31 - by.shift;
  int64_t round = int64_t{1} << (shift - 1);
  if (shift > 31) round += x >= 0 ? 1 << 30 : -(1 << 30);
  return (x * by.value + round) >> shift;
}

RC_GTEST_PROP(FixedPoint, TheSteeperSideIsNeverBelow, ()) {
  const auto near = *rc::gen::inRange(-3, 4), bits = *rc::gen::inRange(-12, 4);
  const auto factorA = *rc::gen::inRange<int64_t>(-4, 256), factorB = *rc::gen::inRange<int64_t>(-4, 256);
  const double real = std::ldexp(0.5 + *rc::gen::inRange(0, 1000) / 2001.0, bits);
  Multiplier a = quantizeMultiplier(real);
  // Slopes that differ only in the last bits.
  Multiplier b = quantizeMultiplier(
      factorB > 0 && factorA > 0 ? real * static_cast<double>(factorA) / static_cast<double>(factorB) : real);
  b.value = std::max(b.value + near, 1 << 30);
  RC_PRE(a.shift > -31 && b.shift > -31 && a.shift < 12 && b.shift < 12);
  if (!isSteeper(a, factorA, b, factorB)) return;
  for (int64_t x = -300; x <= 300; ++x) {
    const int64_t first = rescaled(x * factorA, a), second = rescaled(x * factorB, b);
    const bool steeper = x >= 0 ? first >= second : first <= second;
    RC_ASSERT(steeper);
  }
}

TEST(FixedPoint, FunctionsAreClose) {
  for (double x = -15.9; x < 16; x += 0.0137) {
    const auto q4 = static_cast<int32_t>(std::ldexp(x, 27));
    EXPECT_NEAR(q0(logistic(q4)), 1 / (1 + std::exp(-x)), 3e-7) << x;
    EXPECT_NEAR(q0(tanhOf(q4)), std::tanh(x), 3e-7) << x;
    if (x < 0) {
      EXPECT_NEAR(q0(expOnNegative(q4, 4)), std::exp(x), 3e-7) << x;
      EXPECT_NEAR(q0(expOnNegative(q4, 5)), std::exp(2 * x), 3e-7) << x;
    }
  }
  for (int32_t x : {2, 3, 5, 100, 255, 65535, 1 << 29, INT32_MAX}) {
    const Multiplier m = inverseSqrt(x);
    EXPECT_NEAR(std::ldexp(m.value, m.shift - 31) * std::sqrt(x), 1, 1e-4) << x;
  }
}

}  // namespace
}  // namespace carina::lower_tfl
