// SPDX-License-Identifier: Apache-2.0
// Copies boxes of elements between tensors; each dimension has a size and a step in both tensors.
// Permutations, slices, concatenations, repetitions, reversals and padding are built from it.
#pragma once

#include "call.hpp"

namespace carina::rt::kernels {

class Region {
 public:
  /// Two dimensions per tensor dimension suffice for repetitions and pixel shuffles.
  static constexpr uint32_t kDimensions = 2 * kMaxRank;

  /// Adds the next inner dimension. `from` and `to` are in elements; steps may be 0 or negative.
  void add(size_t size, ptrdiff_t from, ptrdiff_t to);
  /// Adds all dimensions of `shape`; null steps are those of `shape` itself.
  void addAll(const Tensor& shape, const size_t* from, const size_t* to);

  /// Copies elements from `source` (starting at element `from`) to `target` (at element `to`), converting
  /// between element types: floats to integers toward zero, anything to Bool as "not 0". The caller ensures
  /// that the whole box is inside both tensors.
  void copy(const Tensor& source, size_t from, const Tensor& target, size_t to) const;

 private:
  uint32_t rank_ = 0;
  bool empty_ = false;
  size_t sizes_[kDimensions];
  ptrdiff_t from_[kDimensions], to_[kDimensions];
};

/// Writes `value` to all elements of `target`.
void fillWith(const Tensor& target, const Operand& value);

/// Copies `input` so that output dimension d is input dimension order[d].
Status permute(const Tensor& input, const Tensor& output, const uint32_t* order);
/// Indices start, start + step, ... of a slice of a dimension; `step` is positive. Bounds may be negative and
/// are clamped.
struct SliceOf {
  size_t start, count, step;
  SliceOf(int32_t size, int64_t start, int64_t end, int64_t step);
};
/// Whether both have the same rank, and the same sizes except in dimension `dim`.
bool sameExceptDim(const Tensor& a, const Tensor& b, uint32_t dim);

}  // namespace carina::rt::kernels
