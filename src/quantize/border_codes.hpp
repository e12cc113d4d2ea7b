// SPDX-License-Identifier: Apache-2.0
// Codes of values at the borders of regions, as given by quantize and dequantize nodes on both sides.
#pragma once

#include <optional>

#include "aten/ops.hpp"
#include "ir/graph.hpp"

namespace carina::quantize {

/// The parameters of a per-tensor quantize or dequantize node: real = scale * (code - zeroPoint), codes in
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

/// The codes to which all readers quantize the value; empty if they differ, if one does not quantize it, or
/// if there are none.
std::optional<BorderCodes> readAs(const ir::Value& value);
/// The codes from which the value is dequantized.
std::optional<BorderCodes> madeOf(const ir::Value& value);

/// The codes of a float value.
ir::Value* quantized(const ir::Builder& b, ir::Value* value, const BorderCodes& codes);
/// The float value of codes.
ir::Value* dequantized(const ir::Builder& b, ir::Value* value, const BorderCodes& codes);

/// Makes `value` hold codes; quantize nodes with these parameters are replaced by it.
void become(ir::Graph& graph, ir::Value* value, const BorderCodes& codes);
/// The same; other readers and graph outputs get the float value, which is dequantized before `before`.
void carryAsCodes(ir::Graph& graph, ir::Value* value, const BorderCodes& codes, ir::Node* before,
                  const ir::LocationRef& location);

}  // namespace carina::quantize
