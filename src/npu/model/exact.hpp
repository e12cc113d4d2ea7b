// SPDX-License-Identifier: Apache-2.0
// Exact scaling arithmetic of the NPU: round(v * multiplier / 2^shift) in every rounding mode
// (ethosu-numerics 2).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "npu/isa/operation.hpp"

namespace carina::npu::model {

__extension__ using Int128 = __int128;

/// What is added to the product before the arithmetic shift, for values >= 0 and < 0.
struct RoundingTerms {
  int64_t positive = 0, negative = 0;
};

/// shift 0..63. doubleRound: position of the first rounding of the DOUBLE modes; above 30 there is none.
constexpr RoundingTerms roundingTerms(Rounding mode, int shift, int doubleRound) {
  const int64_t half = shift > 0 ? int64_t{1} << (shift - 1) : 0;
  const int64_t twice = doubleRound <= 30 && shift > 31 - doubleRound ? int64_t{1} << (30 - doubleRound) : 0;
  switch (mode) {
    case Rounding::DoubleSymmetric:
      return {half + twice, half - twice};
    case Rounding::Natural:
      return {half, half};
    case Rounding::DoubleAsymmetric:
      return {half + twice, half + twice};
    case Rounding::Symmetric:
      return {half, half - (shift > 0 ? 1 : 0)};
    case Rounding::TruncateToZero:
      return {0, static_cast<int64_t>((uint64_t{1} << shift) - 1)};
    case Rounding::TruncateToLower:
      return {0, 0};
  }
  return {half, half};
}

constexpr int64_t saturate64(Int128 v) {
  constexpr Int128 kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(v < kMin ? kMin : v > kMax ? kMax : v);
}

/// One value, any magnitude; the result saturates to 64 bits.
constexpr int64_t scaleExact(int64_t v, uint32_t multiplier, int shift, RoundingTerms terms) {
  const Int128 product = static_cast<Int128>(v) * multiplier + (v >= 0 ? terms.positive : terms.negative);
  return saturate64(product >> shift);
}
constexpr int64_t scaleExact(int64_t v, const Scale& scale) {
  const int shift = scale.shift & 63;
  return scaleExact(v, scale.multiplier, shift, roundingTerms(scale.rounding, shift, scale.doubleRound));
}

/// Low bits of v as a value of the type.
constexpr int64_t wrapTo(int64_t v, ElementType type) {
  switch (type) {
    case ElementType::Int8:
      return static_cast<int8_t>(v);
    case ElementType::UInt8:
      return static_cast<uint8_t>(v);
    case ElementType::Int16:
      return static_cast<int16_t>(v);
    case ElementType::UInt16:
      return static_cast<uint16_t>(v);
    case ElementType::Int32:
      return static_cast<int32_t>(v);
    case ElementType::UInt32:
      return static_cast<uint32_t>(v);
    case ElementType::Int64:
      return v;
  }
  return v;
}

}  // namespace carina::npu::model
