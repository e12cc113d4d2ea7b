// SPDX-License-Identifier: Apache-2.0
// Real factors as TOSA RESCALE multiplier and shift.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace carina::lower {

/// factor ~ multiplier * 2^-shift, 2 <= shift <= 62.
struct RescaleFactor {
  int32_t multiplier = 0;
  int8_t shift = 2;
  friend bool operator==(const RescaleFactor&, const RescaleFactor&) = default;
};

/// multiplier = roundHalfEven(m * 2^bits) where factor = m * 2^e with m in [0.5, 1), shift = bits - e; bits
/// is 31 for scale32, 15 otherwise. Very small factors lose low bits of the multiplier so that the shift
/// stays at 62. Fails if the factor is not positive and finite, or so large that the shift would be below 2.
Result<RescaleFactor> rescaleFactor(double factor, bool scale32 = true);

}  // namespace carina::lower
