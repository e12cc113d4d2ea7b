// SPDX-License-Identifier: Apache-2.0
// Tables of 256 codes as functions that the PLE has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace carina::ethosn {

/// y - outputZeroPoint = ratio * (x - zeroPoint) from the zero point on, alpha times that below it.
struct LeakyCurve {
  int32_t zeroPoint = 0, outputZeroPoint = 0;
  double ratio = 1, alpha = 0;  // 0 < alpha < 1
};
/// `table`: results for the codes -128 to 127. Nothing unless every one of them is met, halves
/// rounded to either side; or to within 1 where results were rounded twice.
std::optional<LeakyCurve> fitLeaky(std::span<const int32_t, 256> table);

/// y = slope * x + offset, rounded and clamped to low...high.
struct ClampedLine {
  double slope = 0, offset = 0;
  int32_t low = -128, high = 127;
};
/// Nothing unless every result is met to within 1.
std::optional<ClampedLine> fitClampedLine(std::span<const int32_t, 256> table);

/// y - outputZeroPoint = ratio * (x - zeroPoint) * gate, where the gate is gate * (x - zeroPoint) + 1/2
/// clamped to 0...1 (hardswish), or the sigmoid of gate * (x - zeroPoint) (swish).
struct GatedLine {
  bool smooth = false;
  int32_t zeroPoint = 0, outputZeroPoint = 0;
  double gate = 1, ratio = 1;
  double gateAt(int32_t code) const;
};
/// Nothing unless every result is met to within 1.
std::optional<GatedLine> fitGated(std::span<const int32_t, 256> table);

/// 256 * sigmoid(scale * (x - zeroPoint)) - 128 (128 * tanh(...)) in whole numbers, times `ratio`, moved so
/// that the code that the PLE gives for 0 becomes `outputZeroPoint`.
struct SmoothCurve {
  bool tanh = false;
  int32_t zeroPoint = 0, outputZeroPoint = 0;
  double scale = 1, ratio = 1;
};
/// Nothing unless every result is met to within 1.
std::optional<SmoothCurve> fitSmooth(std::span<const int32_t, 256> table);

}  // namespace carina::ethosn
