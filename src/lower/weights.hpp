// SPDX-License-Identifier: Apache-2.0
// Constant weights and biases of convolutions and linears, in the form that TOSA requires.
#pragma once

#include "lower/lowering.hpp"

namespace carina::lower {

/// A row-major tensor transposed: dimension i of the result is dimension permutation[i].
Tensor transposed(const Tensor& tensor, const std::vector<int>& permutation);

/// int8 codes with one zero point and a scale per output channel (or one).
struct Weight {
  Tensor codes;  // in aten order
  std::vector<double> scales;
  int64_t zeroPoint = 0;
};

/// The weight operand. Fails if it is not a quantized constant of 8 bits, has scales along a dimension other
/// than channelAxis, or zero points that differ between channels.
Result<Weight> weightOf(const Lowering& lowering, const ir::Value* value, int channelAxis);

/// Bias codes for an accumulator with scales inputScale * weight scale: int32, or int48 for int16 inputs. A
/// bias that was quantized at those scales keeps its codes; others are requantized; an absent bias is zeros.
Result<Tensor> biasOf(const Lowering& lowering, const ir::Value* value, int64_t channels, double inputScale,
                      const std::vector<double>& weightScales, DType inputType);

/// Bounds of the sums of products of 16-bit codes and these weights, whose first dimension is the output
/// channels; nothing if the bias belongs to 8-bit codes.
std::optional<Interval> sumsOf(const Tensor& weight, int64_t zeroPoint, const Tensor& bias);

}  // namespace carina::lower
