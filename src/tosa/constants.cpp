// SPDX-License-Identifier: Apache-2.0
// Constant operands as integers.
#include "tosa/infer.hpp"

namespace carina::tosa {

std::optional<std::vector<int64_t>> constantInts(const ir::Value* value) {
  if (!value || !value->isConstant() || isFloat(value->dtype())) return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < value->constant().numElements(); ++i)
    values.push_back(value->constant().integerAt(i));
  return values;
}

std::optional<int64_t> constantInt(const ir::Value* value) {
  const auto values = constantInts(value);
  if (!values || values->size() != 1) return std::nullopt;
  return values->front();
}

}  // namespace carina::tosa
