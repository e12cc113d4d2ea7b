// SPDX-License-Identifier: Apache-2.0
// The common case of floating-point arithmetic on the host's unit: operands normal or zero, round to nearest,
// and results that rounding cannot have moved out of the denormal range or to infinity. In this case, the
// result and the flags (inexact or none) match the architecture. Branch-free, so that compilers vectorize
// loops over lanes.
//
// Every function returns 1 if its result is valid and 0 if the operation must take the slow path; it ORs 1
// into `inexact` if the result is inexact.
#pragma once

#include <bit>

#include "cpu_m/fp_arith.hpp"

namespace carina::cpu_m::fp_fast {

/// The host type of a bit pattern; half precision is computed in single.
template <class Bits>
struct Host;

template <>
struct Host<std::uint64_t> {
  using Number = double;
  using Signed = std::int64_t;
};
template <>
struct Host<std::uint32_t> {
  using Number = float;
  using Signed = std::int32_t;
};
template <>
struct Host<std::uint16_t> {
  using Number = float;
  using Signed = std::int32_t;
};

template <class Bits>
int normalOrZero(Bits bits) {
  using L = FpLayout<Bits>;
  const auto magnitude = static_cast<typename Host<Bits>::Signed>(fpAbs(bits));
  return ((magnitude >= static_cast<typename Host<Bits>::Signed>(L::kMinNormal)) &
          (magnitude < static_cast<typename Host<Bits>::Signed>(L::kInfinity))) |
         (magnitude == 0);
}
template <class Bits>
int safe(Bits bits) {
  using S = typename Host<Bits>::Signed;
  const auto magnitude = static_cast<S>(fpAbs(bits));
  return (magnitude > static_cast<S>(FpLayout<Bits>::kMinNormal)) &
         (magnitude < static_cast<S>(FpLayout<Bits>::kInfinity));
}

/// The difference of the exponent biases of single and half precision, in the exponent field of single.
inline constexpr std::uint32_t kRebias = 112u << 23;

inline double number(std::uint64_t bits) {
  return std::bit_cast<double>(bits);
}
inline float number(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline float number(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffu, sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  return std::bit_cast<float>(sign | (magnitude == 0 ? 0 : (magnitude << 13) + kRebias));
}

/// Converts `value` to the format of `bits`. `error`: whether `value` itself is inexact.
inline int round(double value, int error, std::uint64_t& bits, int& inexact) {
  bits = std::bit_cast<std::uint64_t>(value);
  inexact |= error;
  return safe(bits) | (bits == 0);
}
inline int round(float value, int error, std::uint32_t& bits, int& inexact) {
  bits = std::bit_cast<std::uint32_t>(value);
  inexact |= error;
  return safe(bits) | (bits == 0);
}
inline int round(double value, int error, std::uint32_t& bits, int& inexact) {
  const auto single = static_cast<float>(value);
  bits = std::bit_cast<std::uint32_t>(single);
  inexact |= error | (single != value);
  return safe(bits) | (std::bit_cast<std::uint64_t>(value) == 0);
}
inline int round(float value, int error, std::uint16_t& bits, int& inexact) {
  const auto wide = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = wide & 0x7fffffff;
  const std::uint32_t rounded = (magnitude - kRebias + 0xfff + (magnitude >> 13 & 1)) >> 13;
  const bool zero = magnitude == 0;
  bits = static_cast<std::uint16_t>((wide >> 16 & 0x8000) | (zero ? 0 : rounded));
  inexact |= error | ((magnitude & 0x1fff) != 0);
  constexpr std::int32_t kSmallest = 113 << 23;  // normal half
  return (static_cast<int>(static_cast<std::int32_t>(magnitude) > kSmallest) & (rounded < 0x7c00) &
          (rounded > 0x400)) |
         (wide == 0);
}

/// Knuth's two-sum: the exact rounding error of `sum` = a + b.
template <class Number>
Number sumError(Number a, Number b, Number sum) {
  const Number part = sum - a;
  return (a - (sum - part)) + (b - part);
}

template <class Bits>
int add(Bits a, Bits b, Bits& result, int& inexact) {
  const auto x = number(a), y = number(b);
  const auto sum = x + y;
  const int error = sumError(x, y, sum) != 0;
  return normalOrZero(a) & normalOrZero(b) & round(sum, error, result, inexact);
}

/// Single and half precision: products are exact in the next wider format.
inline int mul(std::uint32_t a, std::uint32_t b, std::uint32_t& result, int& inexact) {
  const double product = static_cast<double>(number(a)) * number(b);
  const int good = round(product, 0, result, inexact);
  return normalOrZero(a) & normalOrZero(b) & (good | (product == 0));
}
inline int mul(std::uint16_t a, std::uint16_t b, std::uint16_t& result, int& inexact) {
  const float product = number(a) * number(b);
  const int good = round(product, 0, result, inexact);
  return normalOrZero(a) & normalOrZero(b) & (good | (product == 0));
}

/// `sum` rounded to odd instead of to nearest: rounding it once more gives the result of a single rounding.
inline double toOdd(double sum, double error) {
  auto bits = std::bit_cast<std::uint64_t>(sum);
  const bool away = (error > 0) == (sum > 0);
  const std::uint64_t moves = (error != 0) & ~bits & 1;
  bits += away ? moves : 0 - moves;
  return std::bit_cast<double>(bits);
}
inline float toOdd(float sum, float error) {
  auto bits = std::bit_cast<std::uint32_t>(sum);
  const bool away = (error > 0) == (sum > 0);
  const std::uint32_t moves = (error != 0) & ~bits & 1;
  bits += away ? moves : 0 - moves;
  return std::bit_cast<float>(bits);
}

inline int mulAdd(std::uint32_t addend, std::uint32_t a, std::uint32_t b, std::uint32_t& result,
                  int& inexact) {
  const double product = static_cast<double>(number(a)) * number(b);
  const double c = number(addend), sum = product + c, error = sumError(product, c, sum);
  return normalOrZero(a) & normalOrZero(b) & normalOrZero(addend) &
         round(toOdd(sum, error), error != 0, result, inexact);
}
inline int mulAdd(std::uint16_t addend, std::uint16_t a, std::uint16_t b, std::uint16_t& result,
                  int& inexact) {
  const float product = number(a) * number(b);
  const float c = number(addend), sum = product + c, error = sumError(product, c, sum);
  return normalOrZero(a) & normalOrZero(b) & normalOrZero(addend) &
         round(toOdd(sum, error), error != 0, result, inexact);
}

/// maxNum and minNum: exact, and -0 is below +0.
template <class Bits>
int maxNum(Bits a, Bits b, Bits& result) {
  using S = typename Host<Bits>::Signed;
  const auto key = [](Bits bits) {
    const auto magnitude = static_cast<S>(fpAbs(bits));
    return (bits & FpLayout<Bits>::kSign) != 0 ? -magnitude - 1 : magnitude;
  };
  result = key(a) > key(b) ? a : b;
  return normalOrZero(a) & normalOrZero(b);
}
template <class Bits>
int minNum(Bits a, Bits b, Bits& result) {
  const int good = maxNum(fpNeg(a), fpNeg(b), result);
  result = fpNeg(result);
  return good;
}

/// Ordered like the values, for operands that are normal or zero; both zeros are 0.
template <class Bits>
typename Host<Bits>::Signed orderKey(Bits bits) {
  const auto magnitude = static_cast<typename Host<Bits>::Signed>(fpAbs(bits));
  return (bits & FpLayout<Bits>::kSign) != 0 ? -magnitude : magnitude;
}

/// To 32-bit integers, toward zero.
inline int toInteger(std::uint32_t value, bool is_unsigned, std::uint32_t& result, int& inexact) {
  const float x = number(value);
  const float low = is_unsigned ? 0.0F : -2147483648.0F;
  const int inside = (x >= low) & (x < 2147483648.0F);
  const auto integer = static_cast<std::int32_t>(inside != 0 ? x : 0.0F);
  result = static_cast<std::uint32_t>(integer);
  inexact |= static_cast<float>(integer) != x;
  return normalOrZero(value) & inside;
}
/// From signed 32-bit integers.
inline int fromInteger(std::uint32_t value, std::uint32_t& result, int& inexact) {
  const auto integer = static_cast<std::int32_t>(value);
  const auto x = static_cast<float>(integer);
  result = std::bit_cast<std::uint32_t>(x);
  inexact |= static_cast<double>(x) != integer;
  return 1;
}

}  // namespace carina::cpu_m::fp_fast
