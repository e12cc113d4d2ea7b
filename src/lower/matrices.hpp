// SPDX-License-Identifier: Apache-2.0
// Operands of matrix products in the form that TOSA requires.
#pragma once

#include "lower/lowering.hpp"

namespace carina::lower {

/// [batch, rows, inner] and [batch, inner, columns].
struct Matrices {
  ir::Value* left = nullptr;
  ir::Value* right = nullptr;
};

/// Operands of aten.matmul, with their batches broadcast.
Result<Matrices> matricesOf(Lowering& lowering, const StoredTensor& a, const StoredTensor& b);

/// The rows of a linear layer as an image [1, 1, rows, features], and the columns of its weight [O, features]
/// in the order in which the image holds the features.
struct LinearOperands {
  ir::Value* image = nullptr;
  Tensor weight;  // [O, 1, 1, features]
};

LinearOperands linearOperands(Lowering& lowering, const StoredTensor& input, const Tensor& weight);

}  // namespace carina::lower
