// SPDX-License-Identifier: Apache-2.0
#include "quantize/bias_correction.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <map>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {
namespace {

/// Rounded minus true weights.
Tensor weightErrors(const WeightedOp& op, const WeightCodes& codes) {
  Tensor errors = codes.dequantized();
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

/// The mean of what the samples say, held back by how far it may be off: a mean within its own uncertainty
/// says nothing about other inputs.
double trustedMean(std::span<const double> errors) {
  const auto count = static_cast<double>(errors.size());
  double mean = 0, spread = 0;
  for (double error : errors) mean += error / count;
  if (errors.size() == 1 || mean == 0) return mean;
  for (double error : errors) spread += (error - mean) * (error - mean) / (count - 1);
  return mean * std::max(0.0, 1 - spread / count / (mean * mean));
}

}  // namespace

Status correctBiases(ir::Graph& graph, const LayerCodes& codes, std::span<const Sample> samples) {
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  ir::Graph errors = graph.clone(&mapping);
  std::vector<WeightedOp> layers;
  std::vector<ir::Value*> outputs;
  for (ir::Node* node : graph.nodes()) {
    const auto op = asWeighted(*node);
    const auto rounded = codes.find(node);
    if (!op || rounded == codes.end()) continue;
    CARINA_TRY(ir::Value* const mean,
               addErrorLayer(errors, mapping, *op, weightErrors(*op, rounded->second)));
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
  // Layers of one weight and one bias, the steps of a recurrence, keep one bias.
  std::map<std::pair<const ir::Value*, const ir::Value*>, std::vector<size_t>> alike;
  for (size_t l = 0; l < layers.size(); ++l) alike[{layers[l].weight, layers[l].bias}].push_back(l);
  std::vector<ir::Value*> corrected(layers.size());
  std::vector<double> shown(samples.size());
  for (size_t first = 0; first < layers.size(); ++first) {
    const auto& group = alike.at({layers[first].weight, layers[first].bias});
    if (group.front() != first) continue;
    const auto channels = outputs[first]->numElements();
    Tensor bias =
        layers[first].bias ? layers[first].bias->constant() : Tensor::zeros(DType::Float32, {channels});
    const auto values = bias.mutableAs<float>();
    for (size_t c = 0; c < values.size(); ++c) {
      for (size_t s = 0; s < means.size(); ++s) {
        double sum = 0;
        for (size_t l : group) sum += static_cast<double>(means[s][l].as<float>()[c]);
        shown[s] = sum / static_cast<double>(group.size());
      }
      values[c] -= static_cast<float>(trustedMean(shown));
    }
    ir::Value* constant = graph.addConstant(std::move(bias));
    for (size_t l : group) corrected[l] = constant;
  }
  for (size_t l = 0; l < layers.size(); ++l)
    layers[l].node->setOperandGroup(WeightedOp::kBiasOperand, std::array{corrected[l]});
  graph.eraseUnusedConstants();
  return {};
}

}  // namespace carina::quantize
