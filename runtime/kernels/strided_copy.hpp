// SPDX-License-Identifier: Apache-2.0
// Walking two tensors together in the logical order of one, each with its own strides.
#pragma once

#include "elements.hpp"

namespace carina::rt::kernels {

class StridedIndex {
 public:
  /// `fromStrides` and `toStrides` are per logical dimension of `shape`, in elements.
  StridedIndex(const Tensor& shape, const size_t* fromStrides, const size_t* toStrides)
      : shape_(shape), fromStrides_(fromStrides), toStrides_(toStrides) {}
  size_t from() const { return from_; }
  size_t to() const { return to_; }
  void next() {
    for (uint32_t d = shape_.rank; d-- > 0;) {
      from_ += fromStrides_[d];
      to_ += toStrides_[d];
      if (++index_[d] < shape_.sizes[d]) return;
      from_ -= fromStrides_[d] * static_cast<size_t>(shape_.sizes[d]);
      to_ -= toStrides_[d] * static_cast<size_t>(shape_.sizes[d]);
      index_[d] = 0;
    }
  }

 private:
  const Tensor& shape_;
  const size_t* fromStrides_;
  const size_t* toStrides_;
  int32_t index_[kMaxRank] = {};
  size_t from_ = 0, to_ = 0;
};

/// Elements of equal type, over the shape of `output`.
Status copyStrided(const Tensor& input, const size_t* fromStrides, const Tensor& output,
                   const size_t* toStrides);

}  // namespace carina::rt::kernels
