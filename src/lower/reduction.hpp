// SPDX-License-Identifier: Apache-2.0
// Tensors viewed as rows that are reduced; shared by sums, extremes and norms.
#pragma once

#include <vector>

#include "lower/lowering.hpp"

namespace carina::lower {

/// Kernels of sums by convolution that every Ethos-U runs in one operation.
inline constexpr int64_t kMaxSumHeight = 64, kMaxSumArea = 4096, kMaxSumChannels = 65536;

/// A tensor viewed as [outer, reduced, inner] in storage.
struct Reduction {
  ir::Value* value = nullptr;
  int64_t outer = 1, inner = 1;
  Shape reduced;           // sizes of the reduced dimensions, in storage order
  std::vector<int> kept;   // kept dimensions in storage order (outer ones, then inner ones)
  std::vector<int> order;  // all dimensions in storage order

  int64_t count() const { return numElements(reduced); }
};

/// Makes the reduced dimensions adjacent. In channel-last storage H and W already are.
Reduction reductionOf(Lowering& lowering, const StoredTensor& data, const std::vector<int>& dims);

/// The layout of a result without (or with size 1 for) the reduced dimensions.
Layout resultLayout(const Reduction& reduction, const Shape& input, const Shape& result);

/// A sum in int32: value * 2^shift.
struct Sum {
  ir::Value* value = nullptr;
  int shift = 0;
};

/// Sum of (code - zero) as [outer, inner]. int8: a convolution with ones, which removes the zero point and
/// needs no wide copy of the input. More than 65,536 16-bit codes (2^23 8-bit codes) are added up in partial
/// sums without their low bits; int32 values are added up without scaling.
Result<Sum> summed(Lowering& lowering, const Reduction& r, int64_t zero);

/// sum(x^2 / 2^q) over n of int32 values [outer, n] or [outer, n, inner], with size 1 in place of n; at most
/// 2^30. Rows of more than `part` elements are added up in parts, whose squares keep more of their low bits.
ir::Value* sumOfSquares(Emitter& emit, ir::Value* x, int q, int64_t part);
/// The number of these parts.
int64_t partsOf(int64_t count, int64_t part);

}  // namespace carina::lower
