// SPDX-License-Identifier: Apache-2.0
// Compares the kernels' own functions with those of the C library in double precision.
#include "kernels/mathematics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

namespace carina::rt::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  const char* name;
  float (*own)(float);
  double (*exact)(double);
  float low, high;  // tested range
};
const Case kCases[] = {
    {"exp", mathematics::exp, std::exp, -103, 89},      {"expm1", mathematics::expm1, std::expm1, -40, 89},
    {"tanh", mathematics::tanh, std::tanh, -12, 12},    {"sinh", mathematics::sinh, std::sinh, -90, 90},
    {"cosh", mathematics::cosh, std::cosh, -90, 90},    {"erf", mathematics::erf, std::erf, -5, 5},
    {"sin", mathematics::sin, std::sin, -10000, 10000}, {"sin_near", mathematics::sin, std::sin, -500, 500},
    {"cos", mathematics::cos, std::cos, -10000, 10000}, {"cos_near", mathematics::cos, std::cos, -500, 500},
    {"tan", mathematics::tan, std::tan, -100, 100},     {"atan", mathematics::atan, std::atan, -30, 30},
    {"asin", mathematics::asin, std::asin, -1, 1},      {"acos", mathematics::acos, std::acos, -1, 1},
    {"log", mathematics::log, std::log, 0, 30},         {"log1p", mathematics::log1p, std::log1p, -1, 30},
    {"asinh", mathematics::asinh, std::asinh, -30, 30}, {"acosh", mathematics::acosh, std::acosh, 1, 30},
    {"atanh", mathematics::atanh, std::atanh, -1, 1},
};

/// Difference in units in the last place of the exact result.
double unitsOff(float found, double exact) {
  const float wanted = static_cast<float>(exact);
  if (std::isnan(wanted) || std::isinf(wanted))
    return (std::isnan(wanted) ? std::isnan(found) : found == wanted) ? 0 : kInfinity;
  const double unit = static_cast<double>(std::nextafter(std::fabs(wanted), kInfinity)) - std::fabs(wanted);
  return std::fabs(static_cast<double>(found) - exact) / unit;
}

class Mathematics : public testing::TestWithParam<Case> {
 protected:
  void expectNear(float x) const {
    const Case& c = GetParam();
    EXPECT_LE(unitsOff(c.own(x), c.exact(static_cast<double>(x))), 4) << c.name << '(' << x << ')';
  }
};

TEST_P(Mathematics, IsWithinFourUnitsInTheLastPlace) {
  const Case& c = GetParam();
  std::mt19937 random(3);
  std::uniform_real_distribution<float> even(c.low, c.high), exponents(-80, 80);
  for (int i = 0; i < 100'000; ++i) {
    expectNear(even(random));
    const float size = std::exp(exponents(random)), x = i % 2 == 0 ? size : -size;
    // Arguments outside the range are not tested.
    if (x >= c.low && x <= c.high) expectNear(x);
    if (HasFailure()) return;
  }
}

TEST_P(Mathematics, SpecialValuesMatchC) {
  const Case& c = GetParam();
  for (const float x : {0.0F, -0.0F, 1.0F, -1.0F, kInfinity, -kInfinity,
                        std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::max(),
                        std::numeric_limits<float>::lowest(), 1e-40F, -1e-40F, 512.0F, 513.0F}) {
    const float found = c.own(x), wanted = static_cast<float>(c.exact(static_cast<double>(x)));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(found)) << c.name << '(' << x << ") is " << found;
    } else {
      EXPECT_LE(unitsOff(found, c.exact(static_cast<double>(x))), 4) << c.name << '(' << x << ')';
      if (wanted != 0) {
        EXPECT_EQ(std::signbit(found), std::signbit(wanted)) << c.name << '(' << x << ')';
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, Mathematics, testing::ValuesIn(kCases),
                         [](const auto& at) { return std::string(at.param.name); });

const float kEnds[] = {0.0F,
                       -0.0F,
                       1.0F,
                       -2.5F,
                       kInfinity,
                       -kInfinity,
                       std::numeric_limits<float>::quiet_NaN(),
                       1e-40F,
                       std::numeric_limits<float>::max()};

TEST(MathematicsOfTwo, RemaindersAreExact) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> wide(-1000, 1000), narrow(-3, 3), exponents(-80, 80);
  const auto expectSame = [](float a, float b) {
    const float found = mathematics::fmod(a, b), wanted = std::fmod(a, b);
    EXPECT_TRUE(found == wanted || (std::isnan(found) && std::isnan(wanted))) << a << " % " << b;
    if (!std::isnan(wanted)) {
      EXPECT_EQ(std::signbit(found), std::signbit(wanted)) << a << " % " << b;
    }
  };
  for (int i = 0; i < 100'000; ++i) {
    expectSame(wide(random), narrow(random));
    expectSame(std::exp(exponents(random)), std::exp(exponents(random)));
  }
  for (const float a : kEnds) {
    for (const float b : kEnds) expectSame(a, b);
  }
}

TEST(MathematicsOfTwo, AnglesAreInTheRightQuadrant) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> wide(-100, 100);
  const auto expectNear = [](float y, float x) {
    const double exact = std::atan2(static_cast<double>(y), static_cast<double>(x));
    EXPECT_LE(unitsOff(mathematics::atan2(y, x), exact), 4) << y << ", " << x;
    if (!std::isnan(exact)) {
      EXPECT_EQ(std::signbit(mathematics::atan2(y, x)), std::signbit(exact)) << y << ", " << x;
    }
  };
  for (int i = 0; i < 100'000; ++i) expectNear(wide(random), wide(random));
  for (const float y : kEnds) {
    for (const float x : kEnds) {
      if (std::fabs(y) != 1e-40F || std::fabs(x) == 1e-40F) expectNear(y, x);  // denormal quotients
    }
  }
}

}  // namespace
}  // namespace carina::rt::kernels
