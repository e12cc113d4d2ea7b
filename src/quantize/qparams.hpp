// SPDX-License-Identifier: Apache-2.0
// Scale and zero point from an observed range: the affine and symmetric formulas of PyTorch's PT2E observers,
// in float32.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.hpp"

namespace carina::quantize {

/// The integer codes a tensor may take: q in [min, max], stored as `dtype`.
struct CodeRange {
  DType dtype = DType::Int8;
  int64_t min = -128;
  int64_t max = 127;
  friend bool operator==(const CodeRange&, const CodeRange&) = default;
};

inline constexpr CodeRange kInt8Activation{DType::Int8, -128, 127};
inline constexpr CodeRange kInt16Activation{DType::Int16, -32767, 32767};
inline constexpr CodeRange kInt8Weight{DType::Int8, -127, 127};
inline constexpr CodeRange kInt32Bias{DType::Int32, -2147483647, 2147483647};

/// real = scale * (q - zeroPoint). The scale is a float32 value (kept as double where it enters double
/// arithmetic).
struct QParams {
  double scale = 1.0;
  int64_t zeroPoint = 0;
  CodeRange codes;
  friend bool operator==(const QParams&, const QParams&) = default;
};

inline constexpr float kEpsInt8 = 0x1p-16f;   // scale of 8-bit activations and of weights that are all zero
inline constexpr float kEpsInt16 = 0x1p-20f;  // scale of 16-bit activations that are all zero
/// Smallest scale of tensors that are not all zero: what RESCALE reaches from ordinary scales. (ExecuTorch's
/// 2^-16 and 2^-12 turn a tensor of small values into zeros.)
inline constexpr float kEpsTiny = 0x1p-33f;

/// scale = max((max - min) / (codes.max - codes.min), eps) over the range widened to contain 0;
/// zero point = clamp(codes.min - roundHalfEven(min / scale)). A range with min > max or with ends that are
/// not finite gives scale 1, zero point 0.
QParams affineQParams(float min, float max, const CodeRange& codes, float eps = kEpsInt8);

/// scale = max(max(|min|, |max|) / ((codes.max - codes.min) / 2), eps), zero point 0.
QParams symmetricQParams(float min, float max, const CodeRange& codes, float eps = kEpsInt8);

/// clamp(roundHalfEven(x * float(1 / scale)) + zeroPoint): quantized_decomposed.quantize_per_tensor for one
/// value. NaN gives the zero point.
int64_t quantizeValue(float x, const QParams& q);

/// (q - zeroPoint) * scale in float32.
inline float dequantizeValue(int64_t code, const QParams& q) {
  return (static_cast<float>(code) - static_cast<float>(q.zeroPoint)) * static_cast<float>(q.scale);
}

}  // namespace carina::quantize
