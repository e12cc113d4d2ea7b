// SPDX-License-Identifier: Apache-2.0
// Walking a box position by position in two tensors, for kernels that work on something else than single
// elements at each.
#pragma once

#include "elements.hpp"

namespace carina::rt::kernels {

class Positions {
 public:
  /// The next inner dimension, with its steps in elements in both tensors.
  void add(int32_t size, size_t firstStep, size_t secondStep) {
    if (size == 1) return;
    empty_ = empty_ || size <= 0;
    done_ = empty_;
    sizes_[rank_] = size;
    index_[rank_] = 0;
    steps_[0][rank_] = firstStep;
    steps_[1][rank_++] = secondStep;
  }
  bool done() const { return done_; }
  /// From the start again, once done().
  void restart() { done_ = empty_; }
  size_t first() const { return at_[0]; }
  size_t second() const { return at_[1]; }
  void next() {
    for (uint32_t d = rank_; d-- > 0;) {
      at_[0] += steps_[0][d];
      at_[1] += steps_[1][d];
      if (++index_[d] < sizes_[d]) return;
      at_[0] -= steps_[0][d] * static_cast<size_t>(sizes_[d]);
      at_[1] -= steps_[1][d] * static_cast<size_t>(sizes_[d]);
      index_[d] = 0;
    }
    done_ = true;
  }

 private:
  uint32_t rank_ = 0;
  bool done_ = false, empty_ = false;
  int32_t sizes_[kMaxRank], index_[kMaxRank];
  size_t steps_[2][kMaxRank];
  size_t at_[2] = {};
};

}  // namespace carina::rt::kernels
