// SPDX-License-Identifier: Apache-2.0
// The elements of the operand that a reduction folds into each result element.
#pragma once

#include "aten/kernels/strided_copy.hpp"
#include "aten/reduce_dims.hpp"

namespace carina::aten {

class Fold {
 public:
  Fold(const Shape& shape, const ReduceDims& dims) : count_(dims.count) {
    const Shape strides = rowMajorStrides(shape);
    Shape keepShape, keepStrides;
    for (size_t d = 0; d < shape.size(); ++d) {
      (dims.reduced[d] ? foldShape_ : keepShape).push_back(shape[d]);
      (dims.reduced[d] ? foldStrides_ : keepStrides).push_back(strides[d]);
    }
    walkStrided(keepShape, keepStrides, [&](int64_t, int64_t n, int64_t at, int64_t step) {
      for (int64_t i = 0; i < n; ++i) starts_.push_back(at + i * step);
    });
    walkStrided(foldShape_, foldStrides_, [&](int64_t, int64_t n, int64_t at, int64_t step) {
      runs_.push_back(at);
      runLength_ = n;
      runStep_ = step;
    });
  }

  /// Number of elements folded into one result, and number of results.
  int64_t count() const { return count_; }
  int64_t outputs() const { return static_cast<int64_t>(starts_.size()); }

  /// f(operand element) for all elements that fold into result `at`, in row-major order.
  template <typename F>
  void visit(int64_t at, F&& f) const {
    const int64_t base = starts_[static_cast<size_t>(at)];
    for (const int64_t run : runs_) {
      for (int64_t i = 0; i < runLength_; ++i) f(base + run + i * runStep_);
    }
  }
  /// body(result element, elements) where elements(f) is visit.
  template <typename Body>
  void run(Body&& body) const {
    for (int64_t at = 0; at < outputs(); ++at) {
      body(at, [&](auto&& f) { visit(at, f); });
    }
  }
  /// Position of operand `element` among those folded into result `at`, counted in row-major order.
  int64_t position(int64_t at, int64_t element) const {
    int64_t rest = element - starts_[static_cast<size_t>(at)], index = 0;
    for (size_t d = 0; d < foldShape_.size(); ++d) {
      index = index * foldShape_[d] + rest / foldStrides_[d];
      rest %= foldStrides_[d];
    }
    return index;
  }

 private:
  Shape foldShape_, foldStrides_;
  std::vector<int64_t> starts_;  // first element of each result
  // The elements that fold into one result, relative to its start: runs that differ only in their beginning.
  std::vector<int64_t> runs_;
  int64_t runLength_ = 0, runStep_ = 0;
  int64_t count_;
};

}  // namespace carina::aten
