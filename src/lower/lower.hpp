// SPDX-License-Identifier: Apache-2.0
// aten with quantize/dequantize nodes -> TOSA with integer arithmetic and explicit RESCALEs.
#pragma once

#include "ir/graph.hpp"

namespace carina::lower {

/// `partition`: an aten graph whose inputs and outputs are integer (or bool) tensors: quantized values enter
/// through dequantize nodes and leave through quantize nodes. The result has the same inputs and outputs
/// (types, shapes, names, row-major order of PyTorch's shape). Inside, feature maps are channel-last: layouts
/// are assigned over the whole graph and a TRANSPOSE is inserted only where the order must actually change.
/// Rounding is SINGLE_ROUND throughout. Fails with one diagnostic for each node that cannot be expressed,
/// with its place and a remedy.
Result<ir::Graph> lowerToTosa(const ir::Graph& partition);

}  // namespace carina::lower
