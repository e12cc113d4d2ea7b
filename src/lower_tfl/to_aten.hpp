// SPDX-License-Identifier: Apache-2.0
// tfl -> aten: float operators of TensorFlow Lite networks, for those who compute them on a CPU.
#pragma once

#include "ir/graph.hpp"

namespace carina::lower_tfl {

/// Replaces every tfl node by aten nodes that compute the same in float32, maps channel-last as they are;
/// conversions between floats and codes become quantize and dequantize (which round halves to even). Errors:
/// every node that has no such form, with its place.
Status toAten(ir::Graph& graph);

}  // namespace carina::lower_tfl
