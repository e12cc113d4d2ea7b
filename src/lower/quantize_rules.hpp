// SPDX-License-Identifier: Apache-2.0
// Quantize, dequantize and clamp nodes, as seen by other rules.
#pragma once

#include <optional>

#include "lower/lowering.hpp"

namespace carina::lower {

/// The codes of a quantize_per_tensor node; nothing for other operators.
std::optional<Codes> quantizeCodes(const ir::Node& node);
/// The constant of a dequantize node; nothing for other nodes. The Result fails on parameters with unsuitable
/// shapes.
std::optional<Result<QuantizedConstant>> quantizedConstantOf(const ir::Node& node);
/// relu, relu6, hardtanh, clamp with numbers.
bool isClampRule(const ir::Node& node);

}  // namespace carina::lower
