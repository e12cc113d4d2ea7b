// SPDX-License-Identifier: Apache-2.0
#include "base/shape.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace carina {

std::optional<int64_t> checkedNumElements(const Shape& shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
      continue;
    }
    auto product = checkedMul(count, size);
    if (!product) return std::nullopt;
    count = *product;
  }
  return empty ? 0 : count;
}

int64_t numElements(const Shape& shape) {
  auto count = checkedNumElements(shape);
  CARINA_CHECK(count.has_value(), "shape was not verified");
  return *count;
}

Shape rowMajorStrides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

std::optional<Shape> broadcastShapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

std::optional<int64_t> normalizeDim(int64_t dim, int64_t rank) {
  if (rank == 0) rank = 1;  // ATen lets a scalar be indexed as if it had one dimension
  if (dim < -rank || dim >= rank) return std::nullopt;
  return dim < 0 ? dim + rank : dim;
}

std::string shapeText(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace carina
