// SPDX-License-Identifier: Apache-2.0
#include "pipeline/simulated_values.hpp"

#include "aten/ops.hpp"
#include "pipeline/integer_io.hpp"

namespace carina::pipeline {

const ir::Value* quantizedSource(const ir::Value& value) {
  auto dequantize = ir::producerAs<aten::DequantizePerTensor>(&value);
  if (!dequantize) return nullptr;
  auto quantize = ir::producerAs<aten::QuantizePerTensor>(dequantize.input());
  return quantize ? quantize.input() : nullptr;
}

quantize::Sample programSample(const ir::Graph& graph, const quantize::Sample& sample) {
  quantize::Sample result;
  for (size_t i = 0; i < sample.size(); ++i) result.push_back(asInput(sample[i], *graph.inputs()[i]));
  return result;
}

}  // namespace carina::pipeline
