// SPDX-License-Identifier: Apache-2.0
// aten with quantize/dequantize nodes -> TOSA with integer arithmetic and explicit RESCALEs.
#pragma once

#include "ir/graph.hpp"

namespace carina::lower {

/// `partition`: an aten graph whose inputs and outputs are integer (or bool) tensors: quantized values enter
/// through dequantize nodes and leave through quantize nodes. The result has the same inputs and outputs
/// (types, shapes, names, row-major order of PyTorch's shape). Inside, feature maps are channel-last: layouts
/// are assigned over the whole graph and a TRANSPOSE stands only where an order must really change. Rounding
/// is SINGLE_ROUND throughout. Errors: every node that cannot be expressed, each with its place and what to
/// change.
Result<ir::Graph> lowerToTosa(const ir::Graph& partition);

}  // namespace carina::lower
