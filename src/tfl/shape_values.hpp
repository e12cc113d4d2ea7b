// SPDX-License-Identifier: Apache-2.0
// Values that a network computes from the shapes of its tensors (sizes for RESHAPE, TRANSPOSE_CONV,
// RESIZE_BILINEAR, ...), which are known before it runs.
#pragma once

#include <optional>

#include "base/tensor.hpp"
#include "ir/graph.hpp"

namespace carina::tfl {

/// The result of SHAPE, or of an operator that moves or computes integers, if all of its operands are
/// constants: up to 64 elements of int32 or int64, at most one dimension, not quantized. Nothing for other
/// operators. `node` must have passed its checks.
std::optional<Tensor> shapeValue(const ir::Node& node);

}  // namespace carina::tfl
