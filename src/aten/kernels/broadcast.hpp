// SPDX-License-Identifier: Apache-2.0
// Loops over broadcast operands: dimensions are merged where all operands run through memory evenly, and the
// innermost loop is handed over with one step per operand (1 or 0 in nearly all cases, which the compiler
// vectorises).
#pragma once

#include <array>
#include <cstdint>

#include "base/tensor.hpp"

namespace carina::aten {

/// Strides in elements of a dense operand of shape `from`, seen as `to` (0 where it is stretched).
inline Shape broadcastStrides(const Shape& from, const Shape& to) {
  const Shape own = rowMajorStrides(from);
  Shape strides(to.size(), 0);
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) strides[lead + i] = from[i] == 1 ? 0 : own[i];
  return strides;
}

/// For every element of `joint`, in order, the element of a dense tensor of shape `own` that broadcasting
/// reads.
std::vector<int64_t> broadcastOffsets(const Shape& own, const Shape& joint);

/// N operands walked together over one result shape.
template <size_t N>
class BroadcastLoop {
 public:
  BroadcastLoop(const Shape& shape, const std::array<Shape, N>& strides) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      bool mergeable = !sizes_.empty();
      for (size_t k = 0; k < N && mergeable; ++k) mergeable = strides_[k].back() == strides[k][d] * shape[d];
      if (mergeable) {
        sizes_.back() *= shape[d];
        for (size_t k = 0; k < N; ++k) strides_[k].back() = strides[k][d];
      } else {
        sizes_.push_back(shape[d]);
        for (size_t k = 0; k < N; ++k) strides_[k].push_back(strides[k][d]);
      }
    }
    if (sizes_.empty()) {
      sizes_.push_back(1);
      for (size_t k = 0; k < N; ++k) strides_[k].push_back(0);
    }
  }

  /// body(first result element, count, first element of each operand, step of each operand)
  template <typename Body>
  void run(Body&& body) const {
    const size_t rank = sizes_.size();
    const int64_t inner = sizes_[rank - 1];
    std::array<int64_t, N> steps, at{};
    for (size_t k = 0; k < N; ++k) steps[k] = strides_[k][rank - 1];
    int64_t outer = 1;
    for (size_t d = 0; d + 1 < rank; ++d) outer *= sizes_[d];
    if (inner == 0) return;
    Shape index(rank, 0);
    for (int64_t i = 0; i < outer; ++i) {
      body(i * inner, inner, at, steps);
      for (size_t d = rank - 1; d-- > 0;) {
        for (size_t k = 0; k < N; ++k) at[k] += strides_[k][d];
        if (++index[d] < sizes_[d]) break;
        for (size_t k = 0; k < N; ++k) at[k] -= strides_[k][d] * sizes_[d];
        index[d] = 0;
      }
    }
  }

 private:
  Shape sizes_;
  std::array<Shape, N> strides_;
};

}  // namespace carina::aten
