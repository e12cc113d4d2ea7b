// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements: permute, slice, expand, split, pixel_shuffle, ... Each result is a
// strided view of one operand, which is all that type inference, the executor and lowering need to know about
// them.
#pragma once

#include "ir/graph.hpp"

namespace carina::aten {

/// Result element i (row-major over `shape`) is operand element offset + sum index[d] * strides[d]. Strides
/// are in elements of the dense row-major operand; 0 repeats an element, negative strides run backwards.
struct Movement {
  size_t operand = 0;  // flat operand index
  Shape shape;
  ir::Ints strides;
  int64_t offset = 0;
  Shape result;  // the result's shape: same number of elements as `shape`

  /// Whether the result consists of the operand's elements in their original order (possibly with another
  /// shape).
  bool isReshape(const Shape& operandShape) const;
};

/// One movement per result; nothing if the operator is not of this kind. Fails on attributes that do not fit
/// the shapes.
Result<std::optional<std::vector<Movement>>> movements(const ir::Node& node);

}  // namespace carina::aten
