// SPDX-License-Identifier: Apache-2.0
#include "lower_tfl/fixed_point.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace carina::lower_tfl {
namespace {

constexpr int32_t kMost = std::numeric_limits<int32_t>::max(), kLeast = std::numeric_limits<int32_t>::min();
constexpr int32_t kOneInQ2 = 1 << 29;
__extension__ using Int128 = __int128;
constexpr int kUnits = 62;  // the maximum shift of RESCALE

int32_t saturated(int64_t x) {
  return static_cast<int32_t>(std::clamp<int64_t>(x, kLeast, kMost));
}
/// x * 2^n, saturated.
int32_t shiftedUp(int32_t x, int n) {
  return saturated(static_cast<int64_t>(x) * (int64_t{1} << n));
}

/// exp(a) as Q0 for a in [-1/4, 0), Q0: the Taylor series around -1/8.
int32_t expOfQuarter(int32_t a) {
  constexpr int32_t kExpOfMinusEighth = 1895147668, kThird = 715827883;
  const int32_t x = a + (1 << 28), x2 = highMul(x, x), x3 = highMul(x2, x), x4 = highMul(x2, x2);
  const int32_t higher = roundingDivide(highMul(roundingDivide(x4, 2) + x3, kThird) + x2, 1);
  return kExpOfMinusEighth + highMul(kExpOfMinusEighth, x + higher);
}

/// 2 / (1 + a) as Q2 for a in [0, 1), Q0: three iterations of Newton's division.
int32_t twoOverOnePlus(int32_t a) {
  constexpr int32_t kFirst = 1515870810, kSlope = -1010580540;  // 48/17 and -32/17 as Q2
  const auto half = static_cast<int32_t>((static_cast<int64_t>(a) + kMost + 1) / 2);
  int32_t x = kFirst + highMul(half, kSlope);
  for (int step = 0; step < 3; ++step) {
    const int32_t missing = kOneInQ2 - highMul(half, x);
    x += shiftedUp(highMul(x, missing), 2);
  }
  return x;
}

}  // namespace

Multiplier quantizeMultiplier(double real) {
  if (real == 0) return {};
  if (!std::isfinite(real)) return {kMost, 31};
  Multiplier result;
  auto rounded = static_cast<int64_t>(std::round(std::frexp(real, &result.shift) * 2147483648.0));
  if (rounded == int64_t{1} << 31) {
    rounded /= 2;
    ++result.shift;
  }
  if (result.shift < -31) return {};
  result.value = static_cast<int32_t>(rounded);
  return result;
}

bool isSteeper(const Multiplier& a, int64_t factorA, const Multiplier& b, int64_t factorB) {
  if (factorA >= 0 && factorB <= 0) return true;  // the second never has the sign of x
  if (factorA < 0) return false;
  // In units of 2^-kUnits. In addition to rounding to nearest, RESCALE rounds away from zero by 2^(30 -
  // shift) if it shifts by more than 31.
  const auto shiftOf = [](const Multiplier& m) { return std::clamp(31 - m.shift, 0, kUnits); };
  const auto slope = [&](const Multiplier& m, int64_t factor) {
    return (static_cast<Int128>(factor) * m.value) << (kUnits - shiftOf(m));
  };
  const auto away = [&](const Multiplier& m) {
    return shiftOf(m) > 31 ? Int128{1} << (kUnits + 30 - shiftOf(m)) : Int128{0};
  };
  return slope(a, factorA) - slope(b, factorB) >= std::max<Int128>(0, away(b) - away(a));
}

int32_t highMul(int32_t a, int32_t b) {
  return saturated((static_cast<int64_t>(a) * b + (int64_t{1} << 30)) >> 31);
}

int32_t roundingDivide(int32_t x, int exponent) {
  if (exponent == 0) return x;
  const int64_t half = int64_t{1} << (exponent - 1);
  return static_cast<int32_t>((x + half - (x < 0 ? 1 : 0)) >> exponent);
}

int32_t multiply(int32_t x, const Multiplier& by) {
  const int left = std::max(by.shift, 0), right = std::max(-by.shift, 0);
  const auto shifted = static_cast<int32_t>(static_cast<uint32_t>(x) << std::min(left, 31));
  return roundingDivide(highMul(shifted, by.value), std::min(right, 31));
}

int32_t expOnNegative(int32_t a, int integerBits) {
  if (a == 0) return kMost;
  // exp(-1/4), exp(-1/2), exp(-1), exp(-2), ... as Q0, indexed by the bit that represents them.
  constexpr int32_t kPowers[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  const int fractionBits = 31 - integerBits;
  const int32_t quarter = 1 << (fractionBits - 2);
  const int32_t rest = (a & (quarter - 1)) - quarter;  // in [-1/4, 0)
  int32_t result = expOfQuarter(shiftedUp(rest, integerBits));
  const int32_t quarters = rest - a;
  for (int exponent = -2; exponent < integerBits; ++exponent) {
    if (quarters & (1 << (fractionBits + exponent))) result = highMul(result, kPowers[exponent + 2]);
  }
  return result;
}

int32_t oneOverOnePlus(int32_t a) {
  return shiftedUp(twoOverOnePlus(a), 1);
}

int32_t logistic(int32_t a) {
  if (a == 0) return 1 << 30;
  const int32_t positive = oneOverOnePlus(expOnNegative(a > 0 ? -a : a, 4));
  return a > 0 ? positive : kMost - positive;
}

int32_t tanhOf(int32_t a) {
  if (a == 0) return 0;
  // (1 - e) / (1 + e) with e = exp(-2|a|): a Q4 number doubled has the same bits in Q5.
  const int32_t positive = shiftedUp(twoOverOnePlus(expOnNegative(a > 0 ? -a : a, 5)) - kOneInQ2, 2);
  return a > 0 ? positive : -positive;
}

int32_t logOf(int32_t a) {
  constexpr int kInteger = 12, kFraction = 25;  // integer bits of the argument, fraction bits of the sum (Q6)
  constexpr int32_t kLogOf2 = 1488522236, kRootOfHalf = 1518500250, kFourthRootOfHalf = 1805811301;
  constexpr int32_t kCube = 117049297, kSquare = 127690142, kLinear = 1057819769, kConstant = 638450708;
  constexpr int32_t kQuarter = 1 << (kFraction - 2);
  // a = r * 2^power, r between the fourth roots of 1/8 and 1/2, from a itself or from a / sqrt(2).
  const auto powerOf = [](int bits) { return shiftedUp(kInteger - bits, kFraction); };
  const int bitsA = std::countl_zero(static_cast<uint32_t>(a));
  const int bitsB = std::countl_zero(static_cast<uint32_t>(highMul(a, kRootOfHalf))) - 1;
  const int32_t rA = shiftedUp(highMul(shiftedUp(a, bitsA - 1), kRootOfHalf), 1);
  const int32_t r = std::min(rA, shiftedUp(a, bitsB));
  const int32_t power =
      std::max(saturated(int64_t{powerOf(bitsA)} + kQuarter), saturated(int64_t{powerOf(bitsB)} - kQuarter));
  // The logarithm of r as a ratio of polynomials around the fourth root of 1/2.
  const int64_t sum = int64_t{r} + kFourthRootOfHalf;
  const auto middle = static_cast<int32_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
  const int32_t q = 2 * (r - kFourthRootOfHalf), q2 = highMul(q, q);
  const int32_t above = highMul(q, r) + highMul(highMul(q, q2), kCube);
  const int32_t below = highMul(middle, kLinear + q + highMul(kSquare, q2)) + highMul(kConstant, q);
  return shiftedUp(
      highMul(power, kLogOf2) + highMul(roundingDivide(above, kInteger / 2), oneOverOnePlus(below)), 1);
}

Multiplier inverseSqrt(int32_t input) {
  if (input <= 1) return {kMost, 0};
  int right = 11;
  while (input >= 1 << 29) {
    input /= 4;
    ++right;
  }
  const int pairs = (std::countl_zero(static_cast<uint32_t>(input)) - 1) / 2 - 1;
  right -= pairs;
  input <<= 2 * pairs;
  // Newton's iteration x = 3/2 x - input/2 x^3 in Q3, starting from 1.
  const int32_t half = roundingDivide(input >> 1, 1);
  constexpr int32_t kOneAndHalf = (1 << 28) + (1 << 27), kHalfRootOf2 = 1518500250;
  int32_t x = 1 << 28;
  for (int step = 0; step < 5; ++step) {
    const int32_t cube = shiftedUp(highMul(highMul(x, x), x), 6);  // Q9 to Q3
    x = shiftedUp(highMul(kOneAndHalf, x) - highMul(half, cube), 3);
  }
  x = highMul(x, kHalfRootOf2);
  if (right < 0) return {static_cast<int32_t>(static_cast<uint32_t>(x) << -right), 0};
  return {x, -right};
}

int32_t inputRadius(int integerBits, int leftShift) {
  const double most = std::ldexp(static_cast<double>((1 << integerBits) - 1), 31 - integerBits - leftShift);
  return static_cast<int32_t>(std::floor(std::min(most, 2147483647.0)));
}

}  // namespace carina::lower_tfl
