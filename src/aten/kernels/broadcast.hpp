// SPDX-License-Identifier: Apache-2.0
// Loops over broadcast operands: dimensions are merged where all operands run through memory evenly, and the
// innermost loop is handed over with one step per operand (1 or 0 in nearly all cases, which the compiler
// vectorises).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

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

/// The part of a loop that does not depend on the number of operands, compiled once.
class MergedDimensions {
 protected:
  /// Strides of each operand, by dimension of `shape`.
  MergedDimensions(const Shape& shape, std::span<const Shape> strides);

  /// How often the innermost loop runs, and how many elements it takes.
  int64_t runs() const { return runs_; }
  int64_t count() const { return sizes_.back(); }
  /// Step of operand k in the innermost loop.
  int64_t step(size_t k) const { return strides_[k].back(); }
  Shape firstIndex() const { return Shape(sizes_.size(), 0); }
  /// Moves `index`, and the place of each operand, to the next innermost loop.
  void advance(Shape& index, std::span<int64_t> at) const;

 private:
  Shape sizes_;
  std::vector<Shape> strides_;
  int64_t runs_ = 1;
};

/// N operands walked together over one result shape.
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
