// SPDX-License-Identifier: Apache-2.0
// Scalar arithmetic with PyTorch's edge cases: integers wrap, NaN propagates through maximum, remainders have
// the sign of the divisor.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace carina::aten {

/// Integer arithmetic in the unsigned type: wraps instead of overflowing. Callers handle Bool (uint8_t with
/// values 0 and 1).
template <typename T>
T wrapAdd(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}
template <typename T>
T wrapSub(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
  } else {
    return a - b;
  }
}
template <typename T>
T wrapMul(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  } else {
    return a * b;
  }
}
template <typename T>
T wrapNeg(T a) {
  return wrapSub(T{0}, a);
}

template <typename T>
bool isNan(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value);
  } else {
    return false;
  }
}

template <typename T>
T maximumOf(T a, T b) {
  return a > b || isNan(a) ? a : b;
}
template <typename T>
T minimumOf(T a, T b) {
  return a < b || isNan(a) ? a : b;
}
/// min(max(x, low), high): NaN is preserved; the result is high if low > high.
template <typename T>
T clampTo(T value, T low, T high) {
  value = value < low ? low : value;
  return value > high ? high : value;
}

/// C remainder with the dividend's sign; integer divisors must not be 0.
template <typename T>
T truncatedRemainder(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else if constexpr (std::is_signed_v<T>) {
    return b == T{-1} ? T{0} : static_cast<T>(a % b);
  } else {
    return static_cast<T>(a % b);
  }
}
/// Python's %: the result has the divisor's sign.
template <typename T>
T floorRemainder(T a, T b) {
  T m = truncatedRemainder(a, b);
  if constexpr (std::is_signed_v<T>) {
    if (m != T{0} && (m < T{0}) != (b < T{0})) m = wrapAdd(m, b);
  }
  return m;
}
template <typename T>
T truncatedQuotient(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::trunc(a / b);
  } else if constexpr (std::is_signed_v<T>) {
    return b == T{-1} ? wrapNeg(a) : static_cast<T>(a / b);
  } else {
    return static_cast<T>(a / b);
  }
}
/// Python's //; for floats computed from the exact remainder, like in PyTorch.
template <typename T>
T floorQuotient(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (b == T{0}) return a / b;
    const T m = std::fmod(a, b);
    T q = (a - m) / b;
    if (m != T{0} && (m < T{0}) != (b < T{0})) q -= T{1};
    if (q == T{0}) return std::copysign(T{0}, a / b);
    T f = std::floor(q);
    if (q - f > T{0.5}) f += T{1};
    return f;
  } else {
    T q = truncatedQuotient(a, b);
    if constexpr (std::is_signed_v<T>) {
      if (b != T{-1} && a % b != 0 && (a < 0) != (b < 0)) --q;
    }
    return q;
  }
}

template <typename T>
T integerPower(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == T{1}) return T{1};
      if (base == T{-1}) return exponent % 2 == 0 ? T{1} : T{-1};
      return T{0};
    }
  }
  T result{1};
  while (exponent) {
    if (exponent & 1) result = wrapMul(result, base);
    base = wrapMul(base, base);
    exponent = static_cast<T>(exponent >> 1);
  }
  return result;
}

/// pow with special cases for the exponents that PyTorch computes without pow().
template <typename T>
T power(T base, T exponent) {
  if constexpr (std::is_floating_point_v<T>) {
    if (exponent == T{2}) return base * base;
    if (exponent == T{0.5}) return std::sqrt(base);
    if (exponent == T{3}) return base * base * base;
    if (exponent == T{-1}) return T{1} / base;
    if (exponent == T{-0.5}) return T{1} / std::sqrt(base);
    if (exponent == T{-2}) return T{1} / (base * base);
    return std::pow(base, exponent);
  } else {
    return integerPower(base, exponent);
  }
}

}  // namespace carina::aten
