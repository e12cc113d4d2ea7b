// SPDX-License-Identifier: Apache-2.0
// Short names for the operators that rewrites emit most.
#pragma once

#include "aten/ops.hpp"

namespace carina::decompose {

inline ir::Value* add(ir::Builder& b, ir::Value* x, ir::Value* y) {
  return aten::AddTensor::create(b, x, y);
}
inline ir::Value* add(ir::Builder& b, ir::Value* x, double y) {
  return aten::AddScalar::create(b, x, y);
}
inline ir::Value* sub(ir::Builder& b, ir::Value* x, ir::Value* y) {
  return aten::SubTensor::create(b, x, y);
}
inline ir::Value* mul(ir::Builder& b, ir::Value* x, ir::Value* y) {
  return aten::MulTensor::create(b, x, y);
}
inline ir::Value* mul(ir::Builder& b, ir::Value* x, double y) {
  return aten::MulScalar::create(b, x, y);
}
inline ir::Value* where(ir::Builder& b, ir::Value* condition, ir::Value* yes, ir::Value* no) {
  return aten::WhereSelf::create(b, condition, yes, no);
}

}  // namespace carina::decompose
