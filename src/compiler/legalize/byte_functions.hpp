// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of one int8 value that several operators compute: x * sigmoid(x), a hard swish of a
// sum, a minimum and a product, a table whose codes are rescaled, a test for x > 0. Any of them is one table
// of 256 codes.
#pragma once

#include "compiler/legalize/pointwise_part.hpp"

namespace carina::compiler {

struct ByteFunctionMatch {
  const ir::Value* input = nullptr;
  bool alone = false;  // nothing else reads the input
  Tensor table;        // int8, of the codes from -128 on
};

/// The parts of a TOSA graph that compute an int8 value from one int8 value in at least two passes, one of
/// which is a table or an operation on two values, or a truth value in at least two. The longest parts are
/// chosen; an intermediate result that something else reads is computed as well.
class ByteFunctions : public FoundParts<ByteFunctionMatch> {
 public:
  explicit ByteFunctions(const ir::Graph& tosa);
};

}  // namespace carina::compiler
