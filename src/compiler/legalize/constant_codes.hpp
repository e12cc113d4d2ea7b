// SPDX-License-Identifier: Apache-2.0
// Wide constants that are 8-bit or 16-bit codes at one scale: what remains of a RESCALE of a quantized
// constant once it is folded.
#pragma once

#include <cstdint>
#include <optional>

#include "base/tensor.hpp"

namespace carina::compiler {

/// RESCALE of (code - zeroPoint) by multiplier and shift, rounded once, gives the value.
struct ConstantCodes {
  Tensor codes;
  int64_t zeroPoint = 0;  // of int8
  int64_t multiplier = 1, shift = 0;
};

/// Codes of this type, int8 or int16, that give exactly these int32 values, if there are any.
std::optional<ConstantCodes> codesOfNumbers(const Tensor& numbers, DType type);

}  // namespace carina::compiler
