// SPDX-License-Identifier: Apache-2.0
// Scale and zero point formulas compared with hand-computed values, and their defining properties.
#include "quantize/qparams.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "quantize/settings.hpp"

namespace carina::quantize {
namespace {

TEST(AffineQParams, HandComputed) {
  const QParams a = affineQParams(-1, 2, kInt8Activation);
  EXPECT_EQ(a.scale, static_cast<double>(0.0117647061124444f));
  EXPECT_EQ(a.zeroPoint, -43);
  const QParams b = affineQParams(0, 6, kInt8Activation);
  EXPECT_EQ(b.scale, static_cast<double>(0.0235294122248888f));
  EXPECT_EQ(b.zeroPoint, -128);
  const QParams c = affineQParams(-1, 8, kInt8Activation);
  EXPECT_EQ(c.scale, static_cast<double>(0.03529411926865578f));
  EXPECT_EQ(c.zeroPoint, -100);
}

TEST(QParams, TheWidestRangeHasAFiniteScale) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const QParams q = affineQParams(-kMost, kMost, kInt8Activation);
  EXPECT_NEAR(q.scale / kMost, 2.0 / 255, 1e-6);
  EXPECT_EQ(quantizeValue(-kMost, q), -128);
  EXPECT_EQ(quantizeValue(kMost, q), 127);
}

TEST(AffineQParams, ZeroIsAlwaysInRange) {
  EXPECT_EQ(affineQParams(2, 6, kInt8Activation), affineQParams(0, 6, kInt8Activation));
  EXPECT_EQ(affineQParams(-6, -2, kInt8Activation), affineQParams(-6, 0, kInt8Activation));
  EXPECT_EQ(affineQParams(-6, -2, kInt8Activation).zeroPoint, 127);
}

TEST(AffineQParams, TinyAndInvalidRanges) {
  EXPECT_EQ(affineQParams(0, 0, kInt8Activation).scale, 0x1p-16);
  EXPECT_EQ(affineQParams(0, 0, kInt8Activation).zeroPoint, -128);
  EXPECT_EQ(affineQParams(1, -1, kInt8Activation).scale, 1.0);
  EXPECT_EQ(affineQParams(1, -1, kInt8Activation).zeroPoint, 0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(affineQParams(nan, 1, kInt8Activation).scale, 1.0);
}

TEST(SymmetricQParams, HandComputed) {
  EXPECT_EQ(symmetricQParams(-0.5f, 0.25f, kInt8Weight).scale, static_cast<double>(0.5f / 127.0f));
  EXPECT_EQ(symmetricQParams(-0.5f, 0.25f, kInt8Weight).zeroPoint, 0);
  EXPECT_EQ(symmetricQParams(-1e-3f, 0.01f, kInt16Activation, kEpsInt16).scale, 0x1p-20);
  EXPECT_EQ(symmetricQParams(-32767, 4, kInt16Activation, kEpsInt16).scale, 1.0);
}

TEST(ActivationParams, SmallValuesKeepTheirResolution) {
  for (const Precision precision : {Precision::Int8, Precision::Int16x8}) {
    const auto codes = static_cast<double>(activationCodes(precision).max);
    EXPECT_NEAR(activationParams({-1e-5f, 1e-5f}, precision, Scheme::Symmetric).scale * codes, 1e-5, 1e-8);
    EXPECT_GT(activationParams({0, 0}, precision, Scheme::Affine).scale, 0x1p-21);
  }
}

TEST(QuantizeValue, HalfToEvenAndSaturation) {
  const QParams half{0.5, 0, kInt8Activation};
  EXPECT_EQ(quantizeValue(0.25f, half), 0);
  EXPECT_EQ(quantizeValue(0.75f, half), 2);
  EXPECT_EQ(quantizeValue(-0.25f, half), 0);
  EXPECT_EQ(quantizeValue(1e9f, half), 127);
  EXPECT_EQ(quantizeValue(-std::numeric_limits<float>::infinity(), half), -128);
  const QParams bias{1.0, 0, kInt32Bias};
  EXPECT_EQ(quantizeValue(3e9f, bias), 2147483647);
}

RC_GTEST_PROP(AffineQParams, CodesOfTheRangeEndsAreTheEndCodes, (int low, unsigned span)) {
  const float min = static_cast<float>(low % 1000) / 7.0f;
  const float max = min + static_cast<float>(span % 100000 + 1) / 13.0f;
  const QParams q = affineQParams(min, max, kInt8Activation);
  RC_ASSERT(quantizeValue(0.0f, q) == q.zeroPoint);
  RC_ASSERT(dequantizeValue(q.zeroPoint, q) == 0.0f);
  // Rounding the zero point moves both ends by at most one code.
  RC_ASSERT(quantizeValue(std::min(min, 0.0f), q) <= q.codes.min + 1);
  RC_ASSERT(quantizeValue(std::max(max, 0.0f), q) >= q.codes.max - 1);
}

}  // namespace
}  // namespace carina::quantize
