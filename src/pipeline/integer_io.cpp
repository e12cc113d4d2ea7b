// SPDX-License-Identifier: Apache-2.0
#include "pipeline/integer_io.hpp"

#include <algorithm>

#include "aten/ops.hpp"

namespace carina::pipeline {
namespace {

struct Quantizer {
  double scale;
  int64_t zeroPoint;
  DType dtype;
  friend bool operator==(const Quantizer&, const Quantizer&) = default;
};

/// What all users of a float input quantize it to; nothing when one of them does not.
std::optional<Quantizer> commonQuantizer(const ir::Value& input) {
  std::optional<Quantizer> common;
  for (const ir::Use& use : input.uses()) {
    auto quantize = ir::dynCast<aten::QuantizePerTensor>(use.node);
    if (!quantize) return std::nullopt;
    const Quantizer found{quantize.scale(), quantize.zeroPoint(), quantize.dtype()};
    if (common && *common != found) return std::nullopt;
    common = found;
  }
  return common;
}

Status exposeInput(ir::Graph& graph, ir::Value* input) {
  if (input->isGraphOutput()) return fail("program input '{}' is also an output", input->name);
  auto quantizer = commonQuantizer(*input);
  if (!quantizer) {
    return fail("program input '{}' is not quantized in one way by all its users", input->name)
        .withRemedy("use --io float");
  }
  input->type.dtype = quantizer->dtype;
  input->quantization = ir::Quantization{{quantizer->scale}, {quantizer->zeroPoint}, -1};
  const std::vector<ir::Use> uses = input->uses();
  for (const ir::Use& use : uses) {
    graph.replaceAllUses(use.node->result(), input);
    graph.erase(use.node);
  }
  return {};
}

}  // namespace

Status exposeIntegers(ir::Graph& graph) {
  for (ir::Value* input : graph.inputs()) {
    if (isFloat(input->dtype()) && !input->unused()) CARINA_RETURN_IF_ERROR(exposeInput(graph, input));
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    ir::Value* output = graph.outputs()[i];
    if (!isFloat(output->dtype())) continue;
    auto dequantize = ir::producerAs<aten::DequantizePerTensor>(output);
    if (!dequantize) {
      return fail("program output {} ('{}') is not the result of a dequantize", i, output->name)
          .withRemedy("use --io float");
    }
    ir::Value* integer = dequantize.input();
    integer->quantization = ir::Quantization{{dequantize.scale()}, {dequantize.zeroPoint()}, -1};
    graph.setOutput(i, integer);
  }
  graph.eraseDeadNodes();
  return {};
}

}  // namespace carina::pipeline
