// SPDX-License-Identifier: Apache-2.0
// Volumes [N, C, D, H, W] as images, for operators that work along each dimension separately: first along the
// depth, then in the planes.
#pragma once

#include "aten/ops.hpp"

namespace carina::decompose {

inline ir::Value* reshaped(ir::Builder& b, ir::Value* x, const Shape& shape) {
  return x->shape() == shape ? x : aten::Reshape::create(b, x, shape);
}

/// `image` applied to [N, C, D, H * W], which keeps the last dimension.
template <typename F>
ir::Value* alongDepth(ir::Builder& b, ir::Value* x, F image) {
  const Shape s = x->shape();
  ir::Value* y = image(reshaped(b, x, {s[0], s[1], s[2], s[3] * s[4]}));
  return reshaped(b, y, {s[0], s[1], y->dim(2), s[3], s[4]});
}

/// `image` applied to [N * D, C, H, W].
template <typename F>
ir::Value* inPlanes(ir::Builder& b, ir::Value* x, F image) {
  const Shape s = x->shape();
  const ir::Ints swap{0, 2, 1, 3, 4};
  ir::Value* planes = aten::Permute::create(b, x, swap);
  ir::Value* y = image(reshaped(b, planes, {s[0] * s[2], s[1], s[3], s[4]}));
  return aten::Permute::create(b, reshaped(b, y, {s[0], s[2], s[1], y->dim(2), y->dim(3)}), swap);
}

}  // namespace carina::decompose
