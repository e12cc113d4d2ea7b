// SPDX-License-Identifier: Apache-2.0
// Tensor shapes and the overflow-checked arithmetic on sizes that come from files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace carina {

/// Sizes from outermost to innermost; empty for a scalar (one element).
using Shape = std::vector<int64_t>;

/// Product of the sizes; nullopt if a size is negative or the product overflows int64.
std::optional<int64_t> checkedNumElements(const Shape& shape);
/// The same for shapes that are known to be valid (a CHECK fails otherwise).
int64_t numElements(const Shape& shape);

/// Row-major strides in elements.
Shape rowMajorStrides(const Shape& shape);
/// NumPy broadcasting (right-aligned, 1 stretches); nullopt if the shapes are incompatible.
std::optional<Shape> broadcastShapes(const Shape& a, const Shape& b);
/// Maps a dimension index in [-rank, rank) to [0, rank); nullopt if out of range.
std::optional<int64_t> normalizeDim(int64_t dim, int64_t rank);
/// "[1,28,28,3]"
std::string shapeText(const Shape& shape);

inline std::optional<int64_t> checkedAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}
inline std::optional<int64_t> checkedMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}
/// Smallest multiple of `to` that is >= value; value >= 0, to > 0.
constexpr int64_t roundUp(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}
constexpr int64_t ceilDiv(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

}  // namespace carina
