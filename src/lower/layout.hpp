// SPDX-License-Identifier: Apache-2.0
// The arrangement of the elements of an aten tensor in a TOSA tensor. View and permute operators only change
// this description; data moves when a consumer needs another order. Layouts are thus assigned over the whole
// graph instead of per operator.
#pragma once

#include <optional>
#include <vector>

#include "base/shape.hpp"

namespace carina::lower {

/// The storage is a row-major array over `axes` (all extents > 1, outermost first). Dimension d of the aten
/// tensor consists of the axes dims[d] (outermost first; none for a dimension of size 1). Every axis belongs
/// to exactly one dimension.
struct Layout {
  std::vector<int64_t> axes;
  std::vector<std::vector<int>> dims;

  static Layout rowMajor(const Shape& shape);
  /// Storage in the order of the given dimensions: {0, 2, 3, 1} is channel-last for a 4-d tensor.
  static Layout ordered(const Shape& shape, const std::vector<int>& order);

  Shape shape() const;  // of the aten tensor
  /// All axes in aten order.
  std::vector<int> logicalAxes() const;
  /// The axes of the given dimensions, in that order.
  std::vector<int> axesOf(const std::vector<int>& order) const;
  bool isRowMajor() const;

  Layout permuted(const std::vector<int>& permutation) const;  // result dim i is dim permutation[i]
  /// The same elements with another shape (same count) without moving data, if splitting axes allows it.
  std::optional<Layout> viewed(const Shape& shape) const;
  /// Splits axis `axis` into (outer, extent / outer).
  void splitAxis(int axis, int64_t outer);

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// A transposition of a row-major array: reshape to `from`, TRANSPOSE by `permutation` (output axis i is
/// input axis permutation[i]). Adjacent axes that stay adjacent are merged.
struct Transposition {
  Shape from;
  std::vector<int> permutation;
  Shape to() const;
};

/// The transposition that brings storage `axes` into the order `sequence` (a permutation of the axes);
/// nothing if none is needed.
std::optional<Transposition> transposition(const std::vector<int64_t>& axes,
                                           const std::vector<int>& sequence);

}  // namespace carina::lower
