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
