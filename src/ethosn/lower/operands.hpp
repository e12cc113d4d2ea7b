// SPDX-License-Identifier: Apache-2.0
// Operands of sums and products in integer TOSA: numbers of 32 bits, made of 8-bit codes or of constants.
#pragma once

#include <optional>
#include <vector>

#include "tosa/tosa.hpp"

namespace carina::ethosn {

ir::Ints valuesOf(const ir::Value* value);
int64_t valueOf(const ir::Value* value);
/// Multiplier / 2^shift of a RESCALE, per tensor or per channel.
std::vector<float> ratiosOf(const tosa::Rescale& rescale);

/// ratio * (code - zero point), but for what conversions round away in between.
struct WideOperand {
  const ir::Value* codes = nullptr;  // 8 bits, or a constant
  double ratio = 1;
  int64_t zeroPoint = 0;

  bool isConstant() const { return codes->isConstant(); }
  /// Of a constant.
  std::vector<double> values() const;
};
/// Through RESCALEs with one factor and shifts to the left, as PyTorch's front end and TensorFlow Lite's
/// kernels have them. None: the value is made otherwise, or of wider codes.
std::optional<WideOperand> wideOperandOf(const ir::Value* value);

}  // namespace carina::ethosn
