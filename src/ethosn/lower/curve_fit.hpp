// SPDX-License-Identifier: Apache-2.0
// Recognizes tables of 256 codes as functions of the PLE.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace carina::ethosn {

/// y - outputZeroPoint = ratio * (x - zeroPoint) from the zero point upwards, alpha times that below it.
struct LeakyCurve {
  int32_t zeroPoint = 0, outputZeroPoint = 0;
  double ratio = 1, alpha = 0;  // 0 < alpha < 1
};
/// `table`: results for the codes -128 to 127. Empty unless all of them are reproduced, with halves rounded
/// either way; or to within 1 if results were rounded twice.
std::optional<LeakyCurve> fitLeaky(std::span<const int32_t, 256> table);

/// y = slope * x + offset, rounded and clamped to low...high.
struct ClampedLine {
  double slope = 0, offset = 0;
  int32_t low = -128, high = 127;
};
/// Empty unless every result is reproduced to within 1.
std::optional<ClampedLine> fitClampedLine(std::span<const int32_t, 256> table);

/// y - outputZeroPoint = ratio * (x - zeroPoint) * gate, where the gate is gate * (x - zeroPoint) + 1/2
/// clamped to 0...1 (hardswish), or the sigmoid of gate * (x - zeroPoint) (swish).
struct GatedLine {
  bool smooth = false;
  int32_t zeroPoint = 0, outputZeroPoint = 0;
  double gate = 1, ratio = 1;
  double gateAt(int32_t code) const;
};
/// Empty unless every result is reproduced to within 1.
std::optional<GatedLine> fitGated(std::span<const int32_t, 256> table);

/// 256 * sigmoid(scale * (x - zeroPoint)) - 128 (128 * tanh(...)) in integers, times `ratio`, shifted so that
/// the PLE's code for 0 becomes `outputZeroPoint`.
struct SmoothCurve {
  bool tanh = false;
  int32_t zeroPoint = 0, outputZeroPoint = 0;
  double scale = 1, ratio = 1;
};
/// Empty unless every result is reproduced to within 1.
std::optional<SmoothCurve> fitSmooth(std::span<const int32_t, 256> table);

}  // namespace carina::ethosn
