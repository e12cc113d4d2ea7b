// SPDX-License-Identifier: Apache-2.0
// Half and bfloat16: every bit pattern against an arithmetic definition, and rounding at every boundary.
#include "base/float16.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace carina {
namespace {

/// The value of a half by definition, from its sign, exponent and mantissa.
double halfValue(uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31u);
  const double mantissa = static_cast<double>(bits & 1023u);
  const double sign = bits & 0x8000u ? -1.0 : 1.0;
  if (exponent == 31) {
    return mantissa == 0.0 ? sign * std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024.0 + mantissa, exponent - 25);
}

TEST(Half, EveryBitPatternIsExactAndRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = halfToFloat(half);
    const double expected = halfValue(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      const uint16_t back = floatToHalf(value);
      ASSERT_EQ(back & 0x7c00u, 0x7c00u);
      ASSERT_NE(back & 0x3ffu, 0u);
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << bits;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000u) != 0) << bits;
      ASSERT_EQ(floatToHalf(value), half) << bits;
    }
  }
}

TEST(Half, RoundsToNearestEvenBetweenAllNeighbours) {
  for (uint32_t bits = 0; bits < 0x7bffu; ++bits) {
    const double low = halfValue(bits), high = halfValue(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact: one more mantissa bit
    const auto even = static_cast<uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(floatToHalf(middle), even) << bits;
    ASSERT_EQ(floatToHalf(std::nextafter(middle, 0.0f)), bits) << bits;
    ASSERT_EQ(floatToHalf(std::nextafter(middle, 1e9f)), bits + 1) << bits;
    ASSERT_EQ(floatToHalf(-middle), even | 0x8000u) << bits;
  }
}

TEST(Half, LargeValuesBecomeInfinity) {
  EXPECT_EQ(floatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65519.99f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(-1e30f), 0xfc00);
  EXPECT_EQ(floatToHalf(std::numeric_limits<float>::infinity()), 0x7c00);
}

TEST(Bfloat16, EveryBitPatternRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto brain = static_cast<uint16_t>(bits);
    const float value = bfloat16ToFloat(brain);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bfloat16ToFloat(floatToBfloat16(value)))) << bits;
    } else {
      ASSERT_EQ(floatToBfloat16(value), brain) << bits;
    }
  }
}

TEST(Bfloat16, RoundsToNearestEvenBetweenAllNeighbours) {
  for (uint32_t bits = 0; bits < 0x7f7fu; ++bits) {
    const auto middle = std::bit_cast<float>((bits << 16) | 0x8000u);
    const auto even = static_cast<uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(floatToBfloat16(middle), even) << bits;
    ASSERT_EQ(floatToBfloat16(std::bit_cast<float>(std::bit_cast<uint32_t>(middle) - 1)), bits) << bits;
    ASSERT_EQ(floatToBfloat16(std::bit_cast<float>(std::bit_cast<uint32_t>(middle) + 1)), bits + 1) << bits;
  }
}

TEST(Bfloat16, NanStaysNanWhateverItsPayload) {
  EXPECT_TRUE(std::isnan(bfloat16ToFloat(floatToBfloat16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(bfloat16ToFloat(floatToBfloat16(std::bit_cast<float>(0xffffffffu)))));
}

}  // namespace
}  // namespace carina
