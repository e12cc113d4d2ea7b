// SPDX-License-Identifier: Apache-2.0
// What a network computes from the shapes of its tensors: sizes for RESHAPE, TRANSPOSE_CONV, RESIZE_BILINEAR
// and the like, which are known before it runs.
#pragma once

#include <optional>

#include "base/tensor.hpp"
#include "ir/graph.hpp"

namespace carina::tfl {

/// The result of SHAPE, and of an operator that moves whole numbers or computes with them, where all of its
/// operands are constants: up to 64 elements of int32 or int64, at most one dimension, not quantized. Nothing
/// for other operators. `node` passed its checks.
std::optional<Tensor> shapeValue(const ir::Node& node);

}  // namespace carina::tfl
