// SPDX-License-Identifier: Apache-2.0
// Python numbers as tensors: a Scalar argument is a tensor of rank 0 once its type is known.
#pragma once

#include "base/tensor.hpp"
#include "ir/op_view.hpp"

namespace carina::aten {

/// A number argument (double, int or bool) in `dtype`, rank 0.
Tensor numberTensor(const ir::Attribute& number, DType dtype);

/// A tensor of `type` filled with `value`, which has one element of any dtype.
Tensor filled(const ir::Type& type, const Tensor& value);

}  // namespace carina::aten
