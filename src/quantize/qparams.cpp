// SPDX-License-Identifier: Apache-2.0
// Quantization parameters from observed ranges; see qparams.hpp for the formulas.
#include "quantize/qparams.hpp"

#include <algorithm>
#include <cmath>

namespace carina::quantize {
namespace {

bool validRange(float min, float max) {
  return std::isfinite(min) && std::isfinite(max) && min <= max;
}

}  // namespace

QParams affineQParams(float min, float max, const CodeRange& codes, float eps) {
  if (!validRange(min, max)) return {1.0, 0, codes};
  const float low = std::min(min, 0.0f);
  const float high = std::max(max, 0.0f);
  const float steps = static_cast<float>(codes.max - codes.min), width = high - low;
  // The width of a range of finite numbers may be infinite.
  const float scale = std::max(std::isfinite(width) ? width / steps : high / steps - low / steps, eps);
  const int64_t zero = codes.min - static_cast<int64_t>(std::nearbyint(low / scale));
  return {scale, std::clamp(zero, codes.min, codes.max), codes};
}

QParams symmetricQParams(float min, float max, const CodeRange& codes, float eps) {
  if (!validRange(min, max)) return {1.0, 0, codes};
  const float magnitude = std::max(-std::min(min, 0.0f), std::max(max, 0.0f));
  const float half = static_cast<float>(codes.max - codes.min) / 2.0f;
  return {std::max(magnitude / half, eps), 0, codes};
}

int64_t quantizeValue(float x, const QParams& q) {
  const float inverse = static_cast<float>(1.0 / q.scale);
  const float code = std::nearbyint(x * inverse) + static_cast<float>(q.zeroPoint);
  if (std::isnan(code)) return std::clamp<int64_t>(q.zeroPoint, q.codes.min, q.codes.max);
  // Clamped as double: float cannot hold 2^31 - 1.
  const double clamped = std::clamp(static_cast<double>(code), static_cast<double>(q.codes.min),
                                    static_cast<double>(q.codes.max));
  return static_cast<int64_t>(clamped);
}

}  // namespace carina::quantize
