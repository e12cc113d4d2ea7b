// SPDX-License-Identifier: Apache-2.0
// Fixed-point arithmetic of TFLite and CMSIS-NN kernels: a scale is multiplier / 2^31 * 2^shift.
#pragma once

#include <stdint.h>

namespace carina::rt::kernels {

/// value / 2^exponent, halves away from zero. 0 <= exponent <= 31.
constexpr int32_t dividedByPower(int32_t value, int exponent) {
  const int32_t mask = static_cast<int32_t>((uint32_t{1} << exponent) - 1);
  const int32_t rest = value & mask, result = value >> exponent;
  const int32_t threshold = (mask >> 1) + (result < 0 ? 1 : 0);
  return result + (rest > threshold ? 1 : 0);
}

/// floor((a * b + 2^30) / 2^31). The caller must exclude -2^31 times itself.
constexpr int32_t highProduct(int32_t a, int32_t b) {
  return static_cast<int32_t>((int64_t{a} * b + (int64_t{1} << 30)) >> 31);
}

/// The saturating variant.
constexpr int32_t saturatingHighProduct(int32_t a, int32_t b) {
  if (a == INT32_MIN && b == INT32_MIN) return INT32_MAX;
  const int64_t nudge = (a < 0) != (b < 0) ? 1 - (int64_t{1} << 30) : int64_t{1} << 30;
  return static_cast<int32_t>((int64_t{a} * b + nudge) / (int64_t{1} << 31));
}

/// Terms of e^x: a Taylor series around -1/8 for the part of x within 1/4, then one factor e^-(2^k), k = -2
/// to 4, for each remaining bit. Fractions of 2^31.
struct ExpTerms {
  static constexpr int32_t kMiddle = 1895147668;  // e^-1/8
  static constexpr int32_t kThird = 715827883;
  static constexpr int kFirstBit = 24;  // 1/4 with 26 fraction bits
  static constexpr int32_t kFactors[7] = {1672461947, 1302514674, 790015084, 290630308,
                                          39332535,   720401,     242};
};

/// Converts a value to another scale. `shift` is from -31 to 30.
struct Rescale {
  int32_t multiplier = 0, shift = 0;

  constexpr bool sane() const { return shift >= -31 && shift <= 30 && multiplier >= 0; }
  constexpr int32_t operator()(int32_t value) const {
    const int32_t up = static_cast<int32_t>(static_cast<uint32_t>(value) << (shift > 0 ? shift : 0));
    return dividedByPower(highProduct(up, multiplier), shift > 0 ? 0 : -shift);
  }
};

constexpr int32_t clampTo(int32_t value, int32_t low, int32_t high) {
  return value < low ? low : value > high ? high : value;
}
constexpr int32_t wrappedSum(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

}  // namespace carina::rt::kernels
