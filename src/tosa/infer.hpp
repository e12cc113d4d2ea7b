// SPDX-License-Identifier: Apache-2.0
// Inference of the result types of the TOSA operators. Each function also checks every error condition of its
// operators (operand ranks, element types, compile-time constants, attribute ranges) and, if the node's
// results are already recorded, that they agree. Diagnostics end with the short name of the broken rule in
// parentheses: the conformance suite's name if it has one. Shapes and conditions: TOSA 1.0 specification.
#pragma once

#include <optional>
#include <span>

#include "ir/graph.hpp"

namespace carina::tosa {

/// Elements of a constant integer or shape operand; nothing if it is not constant.
std::optional<std::vector<int64_t>> constantInts(const ir::Value* value);
/// The value of a shape operand.
Tensor shapeTensor(std::span<const int64_t> sizes);
/// Its only element (zero points, shifts); nothing if it is not constant or has more.
std::optional<int64_t> constantInt(const ir::Value* value);

}  // namespace carina::tosa

namespace carina::tosa::infer {

using Types = Result<std::vector<ir::Type>>;

Types argmax(const ir::Node& node);
Types pool2d(const ir::Node& node);  // AVG_POOL2D and MAX_POOL2D
Types conv2d(const ir::Node& node);
Types conv3d(const ir::Node& node);
Types depthwiseConv2d(const ir::Node& node);
Types transposeConv2d(const ir::Node& node);
Types matmul(const ir::Node& node);
Types fft2d(const ir::Node& node);
Types rfft2d(const ir::Node& node);

Types unary(const ir::Node& node);      // result shape = shape of operand 0, no further condition
Types broadcast(const ir::Node& node);  // elementwise with two or three tensors of equal rank
Types mul(const ir::Node& node);
Types clamp(const ir::Node& node);
Types table(const ir::Node& node);
Types negate(const ir::Node& node);
Types rescale(const ir::Node& node);

Types reduce(const ir::Node& node);  // the axis is kept with size 1
Types concat(const ir::Node& node);
Types pad(const ir::Node& node);
Types reshape(const ir::Node& node);
Types reverse(const ir::Node& node);
Types slice(const ir::Node& node);
Types tile(const ir::Node& node);
Types transpose(const ir::Node& node);
Types gather(const ir::Node& node);
Types scatter(const ir::Node& node);
Types resize(const ir::Node& node);

}  // namespace carina::tosa::infer

namespace carina::tosa::check {

/// Checks the nested graphs against the operand and result lists.
Status condIf(const ir::Node& node);
Status whileLoop(const ir::Node& node);

}  // namespace carina::tosa::check
