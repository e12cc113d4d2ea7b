// SPDX-License-Identifier: Apache-2.0
// Iterates over the elements that a reduction folds into each element of its output.
#pragma once

#include "positions.hpp"
#include "stream.hpp"

namespace carina::rt::kernels {

class Reduction {
 public:
  /// `dims` are the dimensions of `input` that are removed (or kept with size 1 if `keepDims`). Checks the
  /// output's shape.
  Status open(const Tensor& input, const IntegerList& dims, bool keepDims, const Tensor& output);
  /// Reduces all dimensions.
  Status openAll(const Tensor& input, const Tensor& output);

  /// Number of elements folded into each output element.
  size_t count() const { return count_; }
  /// Iterates over the output elements; out() is the offset of the current one.
  bool done() const { return kept_.done(); }
  void next() { kept_.next(); }
  size_t out() const { return kept_.second(); }

  /// Calls `step` with the elements of the current output element, in logical order, in chunks.
  void reals(void (*step)(void* state, const float* values, size_t count), void* state);
  void integers(void (*step)(void* state, const int64_t* values, size_t count), void* state);

 private:
  Status openMask(const Tensor& input, uint32_t mask, bool keepDims, const Tensor& output);

  const Tensor* input_ = nullptr;
  size_t count_ = 1, length_ = 1, step_ = 1;
  Positions kept_, reduced_;
};

/// Compensated sum of floats; `lost` is what rounding lost of it.
struct RealSum {
  float sum = 0, lost = 0;
  void add(float value) {
    const float corrected = value - lost, next = sum + corrected;
    // Keep infinities: their difference is not a correction.
    lost = next - next == 0.0f ? (next - sum) - corrected : 0.0f;
    sum = next;
  }
};

}  // namespace carina::rt::kernels
