// SPDX-License-Identifier: Apache-2.0
#include "quantize/border_codes.hpp"

namespace carina::quantize {

std::optional<BorderCodes> readAs(const ir::Value& value) {
  std::optional<BorderCodes> common;
  if (value.isGraphOutput()) return std::nullopt;
  for (const ir::Use& use : value.uses()) {
    const auto quantize = ir::dynCast<aten::QuantizePerTensor>(use.node);
    if (!quantize || (common && *common != BorderCodes::of(quantize))) return std::nullopt;
    common = BorderCodes::of(quantize);
  }
  return common;
}

std::optional<BorderCodes> madeOf(const ir::Value& value) {
  const auto dequantize = ir::producerAs<aten::DequantizePerTensor>(&value);
  return dequantize ? std::optional(BorderCodes::of(dequantize)) : std::nullopt;
}

ir::Value* quantized(const ir::Builder& b, ir::Value* value, const BorderCodes& codes) {
  if (madeOf(*value) == codes) {
    return aten::DequantizePerTensor(value->producer()).input();
  }
  return aten::QuantizePerTensor::create(b, value, codes.scale, codes.zeroPoint, codes.low, codes.high,
                                         codes.dtype);
}

ir::Value* dequantized(const ir::Builder& b, ir::Value* value, const BorderCodes& codes) {
  return aten::DequantizePerTensor::create(b, value, codes.scale, codes.zeroPoint, codes.low, codes.high,
                                           codes.dtype);
}

void become(ir::Graph& graph, ir::Value* value, const BorderCodes& codes) {
  value->type.dtype = codes.dtype;
  value->quantization = ir::Quantization{{codes.scale}, {codes.zeroPoint}, -1};
  const std::vector<ir::Use> uses = value->uses();
  for (const ir::Use& use : uses) {
    const auto quantize = ir::dynCast<aten::QuantizePerTensor>(use.node);
    if (!quantize || BorderCodes::of(quantize) != codes) continue;
    graph.replaceAllUses(use.node->result(), value);
    graph.erase(use.node);
  }
}

void carryAsCodes(ir::Graph& graph, ir::Value* value, const BorderCodes& codes, ir::Node* before,
                  const ir::LocationRef& location) {
  const auto becomesCodes = [&](const ir::Node* node) {
    const auto quantize = ir::dynCast<aten::QuantizePerTensor>(node);
    return quantize && quantize.input() == value && BorderCodes::of(quantize) == codes;
  };
  std::vector<ir::Use> readers;
  for (const ir::Use& use : value->uses()) {
    if (!becomesCodes(use.node)) readers.push_back(use);
  }
  std::vector<size_t> outputs;
  for (size_t o = 0; o < graph.outputs().size(); ++o) {
    if (graph.outputs()[o] == value) outputs.push_back(o);
  }
  while (before && becomesCodes(before)) before = before->next();  // those are erased
  become(graph, value, codes);
  if (readers.empty() && outputs.empty()) return;
  ir::Value* real = dequantized(ir::Builder(graph, before, location), value, codes);
  for (const ir::Use& use : readers) use.node->setOperand(use.operand, real);
  for (const size_t o : outputs) graph.setOutput(o, real);
}

}  // namespace carina::quantize
