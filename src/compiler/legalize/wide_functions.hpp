// SPDX-License-Identifier: Apache-2.0
// Two functions that the hardware computes after the output stage: TFLite's logistic function and tanh of
// values with 16 bits or more. In TOSA they are a few dozen 32-bit operators around tables of bytes.
#pragma once

#include <cstdint>

#include "compiler/legalize/pointwise_part.hpp"

namespace carina::compiler {

/// The function of (code * multiplier) / 2^shift, rounded half up.
struct WideFunction {
  bool tanh = false;
  int64_t multiplier = 1, shift = 0;
};

struct WideFunctionMatch {
  const ir::Value* input = nullptr;
  WideFunction function;
};

/// The parts of a TOSA graph that compute such a function of one int16 value, element by element. A part is
/// only recognized if the TOSA interpreter gives the same result for each of the 65,536 codes.
class WideFunctions : public FoundParts<WideFunctionMatch> {
 public:
  explicit WideFunctions(const ir::Graph& tosa);
};

}  // namespace carina::compiler
