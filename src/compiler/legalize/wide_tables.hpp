// SPDX-License-Identifier: Apache-2.0
// Tables from 8-bit codes to 32-bit values, which the hardware supports: in TOSA they are one table per byte,
// shifted and added up, as in TFLite's softmax.
#pragma once

#include "compiler/legalize/byte_functions.hpp"
#include "compiler/legalize/pointwise_part.hpp"
#include "compiler/legalize/wide_functions.hpp"

namespace carina::compiler {

struct WideTableMatch {
  const ir::Value* input = nullptr;
  bool alone = false;  // nothing else reads the input
  Tensor table;        // of the 256 codes from -128 on
};

/// The parts of a TOSA graph that compute an int32 value from one int8 value with at least two TABLE
/// operators. Parts inside a wide function or a byte function are not listed.
class WideTables : public FoundParts<WideTableMatch> {
 public:
  WideTables(const ir::Graph& tosa, const WideFunctions& functions, const ByteFunctions& bytes);
};

}  // namespace carina::compiler
