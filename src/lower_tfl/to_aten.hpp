// SPDX-License-Identifier: Apache-2.0
// tfl -> aten: float operators of TensorFlow Lite networks, for execution on a CPU.
#pragma once

#include "ir/graph.hpp"

namespace carina::lower_tfl {

/// Replaces every tfl node by aten nodes that compute the same in float32, with feature maps left
/// channel-last; conversions between floats and codes become quantize and dequantize (which round halves to
/// even). Fails on nodes that have no such form, with the place of each.
Status toAten(ir::Graph& graph);

}  // namespace carina::lower_tfl
