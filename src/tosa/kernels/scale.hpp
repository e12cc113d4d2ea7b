// SPDX-License-Identifier: Apache-2.0
// The specification's fixed point scaling.
#pragma once

#include <bit>
#include <cstdint>

namespace carina::tosa::kernels {

/// (value * multiplier) / 2^shift, halves rounded up; with doubleRound and shift > 31, in two stages. The
/// caller has checked 2 <= shift <= 62, multiplier >= 0 and -2^(shift-1) <= value < 2^(shift-1), so that the
/// product fits.
inline int64_t applyScale32(int64_t value, int64_t multiplier, int shift, bool doubleRound) {
  int64_t round = int64_t{1} << (shift - 1);
  if (doubleRound && shift > 31) round += value >= 0 ? int64_t{1} << 30 : -(int64_t{1} << 30);
  return (value * multiplier + round) >> shift;
}

/// The same for 48-bit values and 16-bit multipliers.
inline int64_t applyScale16(int64_t value, int64_t multiplier, int shift) {
  return (value * multiplier + (int64_t{1} << (shift - 1))) >> shift;
}

struct ReciprocalScale {
  int32_t multiplier;
  int shift;
};

/// About 1 / count, for AVG_POOL2D; count >= 1.
inline ReciprocalScale reciprocalScale(uint32_t count) {
  const int k = 32 - std::countl_zero(count - 1);
  const int64_t numerator = ((int64_t{1} << 30) + 1) << k;
  return {static_cast<int32_t>(numerator / count), 30 + k};
}

}  // namespace carina::tosa::kernels
