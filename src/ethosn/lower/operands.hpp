// SPDX-License-Identifier: Apache-2.0
// Operands of sums and products in integer TOSA: 32-bit values computed from 8-bit codes or constants.
#pragma once

#include <optional>
#include <vector>

#include "tosa/tosa.hpp"

namespace carina::ethosn {

ir::Ints valuesOf(const ir::Value* value);
int64_t valueOf(const ir::Value* value);
/// Multiplier / 2^shift of a RESCALE, per tensor or per channel.
std::vector<float> ratiosOf(const tosa::Rescale& rescale);

/// ratio * (code - zero point), except for rounding in the conversions in between.
struct WideOperand {
  const ir::Value* codes = nullptr;  // 8 bits, or a constant
  double ratio = 1;
  int64_t zeroPoint = 0;

  bool isConstant() const { return codes->isConstant(); }
  /// Values of a constant.
  std::vector<double> values() const;
};
/// Traces RESCALEs with one factor and shifts to the left, as PyTorch's front end and TensorFlow Lite's
/// kernels use them. Empty if the value is computed in another way, or from wider codes.
std::optional<WideOperand> wideOperandOf(const ir::Value* value);

}  // namespace carina::ethosn
