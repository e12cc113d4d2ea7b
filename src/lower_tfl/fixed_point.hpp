// SPDX-License-Identifier: Apache-2.0
// The integer arithmetic of TensorFlow Lite's reference kernels (that of gemmlowp), on plain int32 values.
// "Qn" is a number with n integer bits, a sign and 31 - n fraction bits. Everything here runs at compile
// time, on the entries of tables.
#pragma once

#include <cstdint>

namespace carina::lower_tfl {

/// A real factor: multiplier * 2^(shift - 31), multiplier in [2^30, 2^31) or 0.
struct Multiplier {
  int32_t value = 0;
  int shift = 0;
};
/// Rounded half away from zero; factors below 2^-32 become 0, infinite ones and NaN the largest. `real` >= 0.
Multiplier quantizeMultiplier(double real);

/// Whether round(x * factorA * a), as RESCALE rounds twice, is at least round(x * factorB * b) for every x >=
/// 0, and at most that for every x < 0. Conservative: false if it depends on which x occur.
bool isSteeper(const Multiplier& a, int64_t factorA, const Multiplier& b, int64_t factorB);

/// round(a * b / 2^31), half up; the one product that overflows saturates.
int32_t highMul(int32_t a, int32_t b);
/// round(x / 2^exponent), half away from zero; 0 <= exponent <= 31.
int32_t roundingDivide(int32_t x, int exponent);
/// highMul(x << left, multiplier) / 2^right, the two roundings of TFLite.
int32_t multiply(int32_t x, const Multiplier& by);

/// exp(a) as Q0 for a <= 0 in Qn, 4 <= n <= 5.
int32_t expOnNegative(int32_t a, int integerBits);
/// 1 / (1 + x) as Q0 for x in [0, 1), Q0.
int32_t oneOverOnePlus(int32_t a);
/// 1 / (1 + exp(-a)) as Q0, and tanh(a) as Q0, for a in Q4.
int32_t logistic(int32_t a);
int32_t tanhOf(int32_t a);

/// log(a) as Q5 for a >= 1 in Q12.
int32_t logOf(int32_t a);

/// 1 / sqrt(input) for input > 0, as a multiplier.
Multiplier inverseSqrt(int32_t input);

/// The largest |difference| that fits Qn before its left shift (from 31 - n fraction bits): larger ones are
/// treated as infinite.
int32_t inputRadius(int integerBits, int leftShift);

}  // namespace carina::lower_tfl
