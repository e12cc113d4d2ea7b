// SPDX-License-Identifier: Apache-2.0
// Finds values of a graph in the results of the operations of a command stream: whole, with permuted axes, or
// in pieces (stripes of rows, slices of channels).
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/tensor.hpp"

namespace carina::pipeline {

class ValueSearch {
 public:
  /// Values are indexed in the order in which they are added.
  void add(const Tensor& tensor);

  /// The result of an operation, in row-major order of `shape` (height, width, depth): records the values
  /// that it equals or is a piece of. Returns their indices; empty if there are none.
  std::vector<size_t> found(const Shape& shape, const std::vector<int64_t>& elements);

  /// All elements of the value were found.
  bool appears(size_t value) const { return values_[value].missing == 0; }
  size_t size() const { return values_.size(); }
  const std::vector<int64_t>& elements(size_t value) const { return values_[value].elements; }

 private:
  struct Value {
    Shape shape;
    std::vector<int64_t> elements;
    std::vector<bool> covered;
    int64_t missing = 0;
  };
  bool foundPiece(Value& value, const Shape& shape, const std::vector<int64_t>& elements);

  std::vector<Value> values_;
  std::unordered_multimap<uint64_t, size_t> byContents_;  // of all elements, regardless of order
};

}  // namespace carina::pipeline
