// SPDX-License-Identifier: Apache-2.0
// Iterates over the positions of a box in up to three tensors, for kernels that do not process single
// elements.
#pragma once

#include "elements.hpp"

namespace carina::rt::kernels {

class Positions {
 public:
  /// Adds the next inner dimension, with its step in elements in each tensor.
  void add(int32_t size, size_t firstStep, size_t secondStep, size_t thirdStep = 0) {
    if (size == 1) return;
    empty_ = empty_ || size <= 0;
    done_ = empty_;
    sizes_[rank_] = size;
    index_[rank_] = 0;
    steps_[0][rank_] = firstStep;
    steps_[1][rank_] = secondStep;
    steps_[2][rank_++] = thirdStep;
  }
  bool done() const { return done_; }
  /// Restarts from the beginning, once done().
  void restart() { done_ = empty_; }
  size_t first() const { return at_[0]; }
  size_t second() const { return at_[1]; }
  size_t third() const { return at_[2]; }
  void next() {
    for (uint32_t d = rank_; d-- > 0;) {
      for (uint32_t k = 0; k < 3; ++k) at_[k] += steps_[k][d];
      if (++index_[d] < sizes_[d]) return;
      for (uint32_t k = 0; k < 3; ++k) at_[k] -= steps_[k][d] * static_cast<size_t>(sizes_[d]);
      index_[d] = 0;
    }
    done_ = true;
  }

 private:
  uint32_t rank_ = 0;
  bool done_ = false, empty_ = false;
  int32_t sizes_[kMaxRank], index_[kMaxRank];
  size_t steps_[3][kMaxRank];
  size_t at_[3] = {};
};

}  // namespace carina::rt::kernels
