// SPDX-License-Identifier: Apache-2.0
// Tensors as rows that are reduced: sums, extremes and norms share how they see their operand.
#pragma once

#include <vector>

#include "lower/lowering.hpp"

namespace carina::lower {

/// A tensor seen as [outer, reduced, inner] in storage.
struct Reduction {
  ir::Value* value = nullptr;
  int64_t outer = 1, inner = 1;
  Shape reduced;           // sizes of the reduced dimensions, in storage order
  std::vector<int> kept;   // kept dimensions in storage order (outer ones, then inner ones)
  std::vector<int> order;  // all dimensions in storage order

  int64_t count() const { return numElements(reduced); }
};

/// Brings the reduced dimensions next to each other. In channel-last storage H and W already are.
Reduction reductionOf(Lowering& lowering, const StoredTensor& data, const std::vector<int>& dims);

/// The layout of a result without (or with size 1 for) the reduced dimensions.
Layout resultLayout(const Reduction& reduction, const Shape& input, const Shape& result);

/// A sum in int32: value * 2^shift.
struct Sum {
  ir::Value* value = nullptr;
  int shift = 0;
};

/// Sum of (code - zero) as [outer, inner]. int8: a convolution with ones, which removes the zero point and
/// needs no wide copy of the input. The sum of more than 65,536 codes of 16 bits (2^23 of 8 bits) is that of
/// partial sums without their last bits; of int32 numbers it is as it comes.
Result<Sum> summed(Lowering& lowering, const Reduction& r, int64_t zero);

}  // namespace carina::lower
