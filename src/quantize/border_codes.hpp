// SPDX-License-Identifier: Apache-2.0
// Codes of values at the borders of regions: what quantize and dequantize nodes on both sides say.
#pragma once

#include <optional>

#include "aten/ops.hpp"
#include "ir/graph.hpp"

namespace carina::quantize {

/// What a quantize or dequantize node per tensor says: real = scale * (code - zeroPoint), codes in
/// [low, high].
struct BorderCodes {
  double scale = 1;
  int64_t zeroPoint = 0, low = 0, high = 0;
  DType dtype = DType::Int8;
  friend bool operator==(const BorderCodes&, const BorderCodes&) = default;

  template <typename Op>
  static BorderCodes of(const Op& op) {
    return {op.scale(), op.zeroPoint(), op.quantMin(), op.quantMax(), op.dtype()};
  }
};

/// What everybody who reads the value quantizes it to; nothing when one does not, or nobody reads it.
std::optional<BorderCodes> readAs(const ir::Value& value);
/// What the value is dequantized from.
std::optional<BorderCodes> madeOf(const ir::Value& value);

/// The codes of a float value.
ir::Value* quantized(const ir::Builder& b, ir::Value* value, const BorderCodes& codes);
/// The float value of codes.
ir::Value* dequantized(const ir::Builder& b, ir::Value* value, const BorderCodes& codes);

/// `value` becomes codes: those who quantize it read it as it is.
void become(ir::Graph& graph, ir::Value* value, const BorderCodes& codes);
/// The same, and its other readers, and what leaves the graph, get the float value, made in front of
/// `before`.
void carryAsCodes(ir::Graph& graph, ir::Value* value, const BorderCodes& codes, ir::Node* before,
                  const ir::LocationRef& location);

}  // namespace carina::quantize
