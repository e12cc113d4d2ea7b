// SPDX-License-Identifier: Apache-2.0
// Tables of codes that a PLE function computes, and tables that only resemble such a function.
#include "ethosn/lower/curve_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace carina::ethosn {
namespace {

using Table = std::array<int32_t, 256>;

/// The table of a real function, from input codes to output codes.
Table tableOf(const std::function<double(double)>& function, double inputScale, int inputZero,
              double outputScale, int outputZero) {
  Table table{};
  for (int i = 0; i < 256; ++i) {
    const double y = function(inputScale * (i - 128 - inputZero)) / outputScale;
    table[static_cast<size_t>(i)] =
        static_cast<int32_t>(std::clamp(std::round(y) + outputZero, -128.0, 127.0));
  }
  return table;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST(EthosNCurveFit, LeakyRelus) {
  for (double alpha : {0.01, 0.1, 0.3, 0.9}) {
    for (int zero : {-100, -3, 0, 40}) {
      const auto fit =
          fitLeaky(tableOf([alpha](double x) { return x > 0 ? x : alpha * x; }, 0.05, zero, 0.04, zero / 2));
      ASSERT_TRUE(fit.has_value()) << alpha << " " << zero;
      EXPECT_NEAR(fit->ratio, 1.25, 0.02);
      EXPECT_NEAR(fit->alpha, alpha, 0.02);
    }
  }
}

TEST(EthosNCurveFit, ClampedLines) {
  const auto hardSigmoid = [](double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); };
  for (int zero : {-128, -20, 0, 35}) {
    for (double scale : {0.0078, 0.02, 0.05, 0.1}) {
      for (double out : {1.0 / 256, 1.0 / 255, 1.0 / 200}) {
        const Table table = tableOf(hardSigmoid, scale, zero, out, -128);
        const auto line = fitClampedLine(table);
        ASSERT_TRUE(line.has_value()) << zero << " " << scale << " " << out;
        EXPECT_NEAR(line->slope, scale / 6 / out, 0.02 * scale / 6 / out);
      }
    }
  }
  // Constants and step functions, as in networks whose activations hardly vary.
  for (double high : {0.0, 1.0, 2.0, 50.0}) {
    for (double sign : {1.0, -1.0}) {
      const Table step = tableOf([=](double x) { return sign * x > 4 ? high : 0; }, 1, 0, 1, 3);
      const auto line = fitClampedLine(step);
      ASSERT_TRUE(line.has_value()) << high << " " << sign;
      for (int x = -128; x <= 127; ++x) {
        const double y = std::floor(line->slope * x + line->offset + 0.5);
        EXPECT_EQ(std::clamp<double>(y, line->low, line->high), step[static_cast<size_t>(x + 128)]) << x;
      }
    }
  }
  const auto falling = fitClampedLine(tableOf([](double x) { return -x; }, 0.05, 3, 0.04, 7));
  ASSERT_TRUE(falling.has_value());
  EXPECT_NEAR(falling->slope, -1.25, 0.01);
  EXPECT_FALSE(fitClampedLine(tableOf([](double x) { return x * x; }, 0.05, 3, 0.04, 7)).has_value());
  EXPECT_FALSE(
      fitClampedLine(tableOf([](double x) { return std::tanh(x); }, 0.05, 0, 1 / 127.0, 0)).has_value());
}

TEST(EthosNCurveFit, GatedLines) {
  const auto hardSwish = [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); };
  const auto swish = [](double x) { return x * sigmoid(x); };
  for (int zero : {-60, -20, 0}) {
    for (double scale : {0.03, 0.05, 0.1}) {
      const double out = scale * (127 - zero) / 240;
      const auto hard = fitGated(tableOf(hardSwish, scale, zero, out, -115));
      ASSERT_TRUE(hard.has_value()) << zero << " " << scale;
      const auto smooth = fitGated(tableOf(swish, scale, zero, out, -115));
      ASSERT_TRUE(smooth.has_value()) << zero << " " << scale;
    }
  }
  EXPECT_FALSE(fitGated(tableOf([](double x) { return std::sin(x); }, 0.05, 0, 1 / 127.0, 0)).has_value());
}

TEST(EthosNCurveFit, SigmoidsAndTangents) {
  for (int zero : {-20, 0, 35}) {
    for (double scale : {0.02, 0.05, 0.1}) {
      const auto plain = fitSmooth(tableOf(sigmoid, scale, zero, 1.0 / 256, -128));
      ASSERT_TRUE(plain.has_value()) << zero << " " << scale;
      EXPECT_FALSE(plain->tanh);
      EXPECT_EQ(plain->zeroPoint, zero);
      EXPECT_NEAR(plain->scale, scale, 0.02 * scale);
      EXPECT_NEAR(plain->ratio, 1, 0.01);
      const auto narrow = fitSmooth(tableOf(sigmoid, scale, zero, 1.0 / 255, -128));
      EXPECT_TRUE(narrow.has_value());
      const auto tangent =
          fitSmooth(tableOf([](double x) { return std::tanh(x); }, scale, zero, 1.0 / 127.5, 0));
      ASSERT_TRUE(tangent.has_value()) << zero << " " << scale;
      // tanh(x) is 2 * sigmoid(2 * x) - 1: either fits.
      EXPECT_NEAR(tangent->scale * (tangent->tanh ? 1 : 0.5), scale, 0.02 * scale);
    }
  }
}

TEST(EthosNCurveFit, OtherFunctionsDoNotFit) {
  const auto gelu =
      tableOf([](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, 0.04, 0, 0.04, 0);
  EXPECT_FALSE(fitLeaky(gelu).has_value());
  EXPECT_FALSE(fitSmooth(gelu).has_value());
  const auto square = tableOf([](double x) { return x * x; }, 0.04, 0, 0.04, 0);
  EXPECT_FALSE(fitLeaky(square).has_value());
  EXPECT_FALSE(fitSmooth(square).has_value());
  const auto exponential = tableOf([](double x) { return std::exp(x); }, 0.02, 0, 0.05, -128);
  EXPECT_FALSE(fitLeaky(exponential).has_value());
  EXPECT_FALSE(fitSmooth(exponential).has_value());
  Table spoiled = tableOf([](double x) { return x > 0 ? x : 0.1 * x; }, 0.05, 0, 0.05, 0);
  spoiled[200] += 2;
  EXPECT_FALSE(fitLeaky(spoiled).has_value());
  const Table constant{};
  EXPECT_FALSE(fitLeaky(constant).has_value());
  EXPECT_FALSE(fitSmooth(constant).has_value());
}

}  // namespace
}  // namespace carina::ethosn
