// SPDX-License-Identifier: Apache-2.0
#include "quantize/bias_correction.hpp"

#include <tbb/parallel_for.h>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {
namespace {

/// Rounded minus true weights.
Tensor weightErrors(const WeightedOp& op, const LayerScales& scales, const Settings& settings) {
  Tensor errors = quantizeWeight(op, scales, settings).dequantized();
  const auto values = errors.mutableAs<float>();
  const auto weights = op.weight->constant().as<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] -= weights[i];
  return errors;
}

/// A second copy of the layer in `graph`, with its weight errors for weights and without bias, averaged per
/// channel.
Result<ir::Value*> addErrorLayer(ir::Graph& graph, std::unordered_map<const ir::Value*, ir::Value*>& mapping,
                                 const WeightedOp& op, Tensor errors) {
  ir::Value* const result = mapping.at(op.node->result());  // later layers read the true result
  CARINA_TRY(ir::Node* const copy, ir::cloneNode(*op.node, graph, mapping));
  mapping[op.node->result()] = result;
  copy->result()->name.clear();
  copy->setOperandGroup(WeightedOp::kWeightOperand, std::array{graph.addConstant(std::move(errors))});
  if (op.bias) copy->setOperandGroup(WeightedOp::kBiasOperand, {});
  ir::Ints others;
  for (int64_t d = 0; d < copy->result()->rank(); ++d) {
    if (d != op.channelDim()) others.push_back(d);
  }
  if (others.empty()) return copy->result();
  ir::Builder builder(graph);
  return aten::MeanDim::create(builder, copy->result(), others, false, std::nullopt).output();
}

}  // namespace

Status correctBiases(ir::Graph& graph, const Annotation& annotation, const Assignment& assignment,
                     const std::vector<QParams>& params, std::span<const Sample> samples) {
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  ir::Graph errors = graph.clone(&mapping);
  std::vector<WeightedOp> layers;
  std::vector<ir::Value*> outputs;
  for (ir::Node* node : graph.nodes()) {
    const auto op = asWeighted(*node);
    const auto scales = op ? layerScales(*node, annotation, params) : std::nullopt;
    if (!scales) continue;
    CARINA_TRY(
        ir::Value* const mean,
        addErrorLayer(errors, mapping, *op, weightErrors(*op, *scales, assignment.of(*node).settings)));
    layers.push_back(*op);
    outputs.push_back(mean);
  }
  if (layers.empty()) return {};
  errors.setOutputs(outputs);
  errors.eraseDeadNodes();
  CARINA_TRY(const aten::Executor executor, aten::Executor::create(errors));
  std::vector<std::vector<Tensor>> means(samples.size());
  std::vector<Status> states(samples.size());
  tbb::parallel_for(size_t{0}, samples.size(), [&](size_t s) {
    auto found = executor.run(samples[s]);
    if (found.ok())
      means[s] = std::move(*found);
    else
      states[s] = std::move(found).error();
  });
  for (Status& state : states) CARINA_RETURN_IF_ERROR(std::move(state));
  for (size_t l = 0; l < layers.size(); ++l) {
    const auto channels = outputs[l]->numElements();
    Tensor bias = layers[l].bias ? layers[l].bias->constant() : Tensor::zeros(DType::Float32, {channels});
    const auto values = bias.mutableAs<float>();
    for (size_t c = 0; c < values.size(); ++c) {
      double sum = 0;
      for (const auto& sample : means) sum += static_cast<double>(sample[l].as<float>()[c]);
      values[c] -= static_cast<float>(sum / static_cast<double>(samples.size()));
    }
    layers[l].node->setOperandGroup(WeightedOp::kBiasOperand, std::array{graph.addConstant(std::move(bias))});
  }
  graph.eraseUnusedConstants();
  return {};
}

}  // namespace carina::quantize
