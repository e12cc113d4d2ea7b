// SPDX-License-Identifier: Apache-2.0
// Result types of TOSA 1.0 operators, and constant operands as integers. Named by operators.json.
#pragma once

#include <optional>

#include "ir/graph.hpp"

namespace carina::tosa {

/// Elements of a constant integer or shape operand; nothing when it is not constant.
std::optional<std::vector<int64_t>> constantInts(const ir::Value* value);
/// Its only element (zero points, shifts); nothing when it is not constant or has more.
std::optional<int64_t> constantInt(const ir::Value* value);

namespace infer {
using Types = Result<std::vector<ir::Type>>;
Types argmax(const ir::Node& node);
Types broadcast(const ir::Node& node);
Types compare(const ir::Node& node);
Types concat(const ir::Node& node);
Types conv2d(const ir::Node& node);
Types conv3d(const ir::Node& node);
Types depthwiseConv2d(const ir::Node& node);
Types fft2d(const ir::Node& node);
Types gather(const ir::Node& node);
Types matmul(const ir::Node& node);
Types multiply(const ir::Node& node);
Types pad(const ir::Node& node);
Types pool2d(const ir::Node& node);
Types reduce(const ir::Node& node);
Types reshape(const ir::Node& node);
Types resize(const ir::Node& node);
Types rfft2d(const ir::Node& node);
Types sameAsFirst(const ir::Node& node);
Types select(const ir::Node& node);
Types slice(const ir::Node& node);
Types table(const ir::Node& node);
Types tile(const ir::Node& node);
Types transpose(const ir::Node& node);
Types transposeConv2d(const ir::Node& node);
}  // namespace infer

}  // namespace carina::tosa
