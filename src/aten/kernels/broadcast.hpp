// SPDX-License-Identifier: Apache-2.0
// Loops over broadcast operands: dimensions are merged if the strides of all operands allow it, and the
// innermost loop is passed on with one step per operand (nearly always 1 or 0, which the compiler
// vectorises).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/tensor.hpp"

namespace carina::aten {

/// Strides in elements of a dense operand of shape `from`, broadcast to `to` (0 in broadcast dimensions).
inline Shape broadcastStrides(const Shape& from, const Shape& to) {
  const Shape own = rowMajorStrides(from);
  Shape strides(to.size(), 0);
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) strides[lead + i] = from[i] == 1 ? 0 : own[i];
  return strides;
}

/// For every element of `joint`, in order, the index of the element that broadcasting reads from a dense
/// tensor of shape `own`.
std::vector<int64_t> broadcastOffsets(const Shape& own, const Shape& joint);

/// The part of a loop that does not depend on the number of operands, compiled once.
class MergedDimensions {
 protected:
  /// `strides`: for each operand, one stride per dimension of `shape`.
  MergedDimensions(const Shape& shape, std::span<const Shape> strides);

  /// Number of runs of the innermost loop, and its iterations per run.
  int64_t runs() const { return runs_; }
  int64_t count() const { return sizes_.back(); }
  /// Step of operand k in the innermost loop.
  int64_t step(size_t k) const { return strides_[k].back(); }
  Shape firstIndex() const { return Shape(sizes_.size(), 0); }
  /// Advances `index`, and the offset of each operand, to the next run of the innermost loop.
  void advance(Shape& index, std::span<int64_t> at) const;

 private:
  Shape sizes_;
  std::vector<Shape> strides_;
  int64_t runs_ = 1;
};

/// Iterates over N operands together, in the order of the result's elements.
template <size_t N>
class BroadcastLoop : MergedDimensions {
 public:
  BroadcastLoop(const Shape& shape, const std::array<Shape, N>& strides) : MergedDimensions(shape, strides) {}

  /// body(first result element, count, first element of each operand, step of each operand)
  template <typename Body>
  void run(Body&& body) const {
    const int64_t inner = count();
    if (inner == 0) return;
    std::array<int64_t, N> steps, at{};
    for (size_t k = 0; k < N; ++k) steps[k] = step(k);
    Shape index = firstIndex();
    for (int64_t i = 0; i < runs(); ++i) {
      if (i > 0) advance(index, at);
      body(i * inner, inner, at, steps);
    }
  }
};

}  // namespace carina::aten
