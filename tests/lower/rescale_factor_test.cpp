// SPDX-License-Identifier: Apache-2.0
// Multiplier and shift of RESCALE against hand-computed pairs and the definition.
#include "lower/rescale_factor.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace carina::lower {
namespace {

RescaleFactor factor(double value, bool scale32 = true) {
  return *rescaleFactor(value, scale32);
}

TEST(RescaleFactor, PowersOfTwo) {
  EXPECT_EQ(factor(1.0), (RescaleFactor{1073741824, 30}));
  EXPECT_EQ(factor(0.5), (RescaleFactor{1073741824, 31}));
  EXPECT_EQ(factor(0x1p-7), (RescaleFactor{1073741824, 37}));
  EXPECT_EQ(factor(524288.0), (RescaleFactor{1073741824, 11}));
  EXPECT_EQ(factor(1.0, false), (RescaleFactor{16384, 14}));
}

TEST(RescaleFactor, HandComputed) {
  const double x0 = 0.0117647061124444f, x1 = 0.0235294122248888f, out = 0.03529411926865578f,
               w = 0.003937007859349251f;
  const double shared = 2 * x1 / 1048576;
  EXPECT_EQ(factor(x0 / shared), (RescaleFactor{1073741824, 12}));
  EXPECT_EQ(factor(x1 / shared), (RescaleFactor{1073741824, 11}));
  EXPECT_EQ(factor(shared / out), (RescaleFactor{1431655728, 50}));
  EXPECT_EQ(factor(x0 * x1 / out), (RescaleFactor{1077952569, 37}));
  EXPECT_EQ(factor(x0 * w / out), (RescaleFactor{1442928602, 40}));
}

TEST(RescaleFactor, RoundingUpToTheNextPowerOfTwo) {
  EXPECT_EQ(factor(std::nextafter(1.0, 0.0)), (RescaleFactor{1073741824, 30}));
}

TEST(RescaleFactor, TinyFactorsKeepTheLargestShift) {
  EXPECT_EQ(factor(0x1p-33), (RescaleFactor{1073741824 >> 1, 62}));
  EXPECT_EQ(factor(0x1p-100), (RescaleFactor{0, 62}));
}

TEST(RescaleFactor, Refusals) {
  EXPECT_FALSE(rescaleFactor(0.0).ok());
  EXPECT_FALSE(rescaleFactor(-1.0).ok());
  EXPECT_FALSE(rescaleFactor(std::nan("")).ok());
  EXPECT_FALSE(rescaleFactor(0x1p30).ok());
  EXPECT_TRUE(rescaleFactor(0x1p28).ok());
}

RC_GTEST_PROP(RescaleFactor, ApproximatesTheFactor, (uint32_t mantissa, bool scale32)) {
  const int exponent = *rc::gen::inRange(-30, 12);
  const double value = std::ldexp(1.0 + mantissa * 0x1p-32, exponent);
  const RescaleFactor f = factor(value, scale32);
  RC_ASSERT(f.shift >= 2 && f.shift <= 62);
  RC_ASSERT(std::abs(std::ldexp(f.multiplier, -f.shift) / value - 1) <= (scale32 ? 0x1p-31 : 0x1p-15));
}

}  // namespace
}  // namespace carina::lower
