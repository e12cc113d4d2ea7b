// SPDX-License-Identifier: Apache-2.0
// Real factors as TOSA RESCALE multiplier and shift; follows ExecuTorch's Arm backend, so that results are
// bit-exact with it.
#include "lower/rescale_factor.hpp"

#include <algorithm>
#include <cmath>

namespace carina::lower {

Result<RescaleFactor> rescaleFactor(double factor, bool scale32) {
  if (!std::isfinite(factor) || factor <= 0)
    return fail(Code::UnusableQuantization, "a rescale factor must be positive and finite, not {}", factor)
        .withRemedy("calibrate with samples whose values do not vanish or overflow");
  const int bits = scale32 ? 31 : 15;
  int exponent = 0;
  const double mantissa = std::frexp(factor, &exponent);
  int64_t multiplier = static_cast<int64_t>(std::nearbyint(std::ldexp(mantissa, bits)));
  if (multiplier == int64_t{1} << bits) {
    multiplier /= 2;
    ++exponent;
  }
  int shift = bits - exponent;
  if (shift > 62) {
    multiplier >>= std::min(31, shift - 62);
    shift = 62;
  }
  if (shift < 2)
    return fail(Code::UnusableQuantization, "rescale factor {} is too large (at most 2^{})", factor, bits - 2)
        .withRemedy("the result's range is far below its operands': calibrate with more samples");
  return RescaleFactor{static_cast<int32_t>(multiplier), static_cast<int8_t>(shift)};
}

}  // namespace carina::lower
