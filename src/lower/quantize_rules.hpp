// SPDX-License-Identifier: Apache-2.0
// Quantize, dequantize and clamp nodes, as other rules look at them.
#pragma once

#include <optional>

#include "lower/lowering.hpp"

namespace carina::lower {

/// The codes of a quantize_per_tensor node; nothing when it is another operator.
std::optional<Codes> quantizeCodes(const ir::Node& node);
/// A dequantize node over a constant; nothing when it is something else. The Result fails on parameters of
/// odd shapes.
std::optional<Result<QuantizedConstant>> quantizedConstantOf(const ir::Node& node);
/// relu, relu6, hardtanh, clamp with numbers.
bool isClampRule(const ir::Node& node);

}  // namespace carina::lower
