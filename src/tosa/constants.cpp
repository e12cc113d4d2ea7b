// SPDX-License-Identifier: Apache-2.0
// Constant operands as integers, and shapes as constant operands.
#include <algorithm>

#include "tosa/infer.hpp"

namespace carina::tosa {

std::optional<std::vector<int64_t>> constantInts(const ir::Value* value) {
  if (!value || !value->isConstant() || isFloat(value->dtype())) return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < value->constant().numElements(); ++i)
    values.push_back(value->constant().integerAt(i));
  return values;
}

Tensor shapeTensor(std::span<const int64_t> sizes) {
  Tensor tensor = Tensor::uninitialized(DType::Shape, {static_cast<int64_t>(sizes.size())});
  std::copy(sizes.begin(), sizes.end(), tensor.mutableAs<int64_t>().begin());
  return tensor;
}

std::optional<int64_t> constantInt(const ir::Value* value) {
  const auto values = constantInts(value);
  if (!values || values->size() != 1) return std::nullopt;
  return values->front();
}

}  // namespace carina::tosa
