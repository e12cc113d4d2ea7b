// SPDX-License-Identifier: Apache-2.0
#include "pt2/document.hpp"

#include <algorithm>

namespace carina::pt2 {

bool TensorMeta::isStatic() const {
  return std::all_of(sizes.begin(), sizes.end(), [](const SymbolicSize& size) { return size.isConstant(); });
}

Shape TensorMeta::shape() const {
  Shape shape;
  for (const SymbolicSize& size : sizes) shape.push_back(size.value);
  return shape;
}

}  // namespace carina::pt2
