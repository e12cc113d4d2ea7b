// SPDX-License-Identifier: Apache-2.0
#include "quantize/bias_correction.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <map>

namespace carina::quantize {
namespace {

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

/// Per output channel what each sample says of the mean error of its layer, [channel, sample]: added to
/// `means` times `share`.
void addMeanErrors(const LayerInputs::Layer& layer, const WeightCodes& codes, size_t samples, double share,
                   std::vector<double>& means) {
  const LayerGeometry& g = layer.geometry;
  const auto weights = layer.op.weight->constant().as<float>();
  const auto values = codes.codes.as<int8_t>();
  const auto groups = static_cast<size_t>(g.groups), channels = static_cast<size_t>(g.channels),
             outputs = static_cast<size_t>(g.outputs), taps = static_cast<size_t>(g.taps);
  tbb::parallel_for(size_t{0}, groups * outputs, [&](size_t o) {
    const size_t group = o / outputs;
    const double scale = codes.scales[codes.perChannel ? o : 0];
    for (size_t c = 0; c < channels; ++c) {
      // [output, channel of the group, tap]; a transposed layer has [channel, output of the group, tap]
      const size_t row = g.transposed ? (group * channels + c) * outputs + o % outputs : o * channels + c;
      for (size_t t = 0; t < taps; ++t) {
        const double error = share * (scale * values[row * taps + t] - weights[row * taps + t]);
        const float* inputs = &layer.means[((group * channels + c) * taps + t) * samples];
        for (size_t s = 0; s < samples; ++s) means[o * samples + s] += error * inputs[s];
      }
    }
  });
}

}  // namespace

void correctBiases(ir::Graph& graph, const LayerInputs& inputs, const LayerCodes& codes) {
  // Layers of one weight and one bias, the steps of a recurrence, keep one bias.
  std::map<std::pair<const ir::Value*, const ir::Value*>, size_t> found;
  std::vector<std::vector<const LayerInputs::Layer*>> alike;
  for (const LayerInputs::Layer& layer : inputs.layers()) {
    const auto [it, isNew] = found.try_emplace({layer.op.weight, layer.op.bias}, alike.size());
    if (isNew) alike.emplace_back();
    alike[it->second].push_back(&layer);
  }
  std::vector<Tensor> biases(alike.size());
  tbb::parallel_for(size_t{0}, alike.size(), [&](size_t i) {
    const LayerInputs::Layer& first = *alike[i].front();
    const int64_t channels = first.geometry.groups * first.geometry.outputs;
    biases[i] = first.op.bias ? first.op.bias->constant() : Tensor::zeros(DType::Float32, {channels});
    std::vector<double> means(static_cast<size_t>(channels) * inputs.samples());
    for (const LayerInputs::Layer* layer : alike[i])
      addMeanErrors(*layer, codes.at(layer->op.node), inputs.samples(),
                    1 / static_cast<double>(alike[i].size()), means);
    const auto values = biases[i].mutableAs<float>();
    for (size_t c = 0; c < values.size(); ++c) {
      values[c] -= static_cast<float>(trustedMean({&means[c * inputs.samples()], inputs.samples()}));
    }
  });
  for (size_t i = 0; i < alike.size(); ++i) {
    ir::Value* constant = alike[i].front()->op.node->graph().addConstant(std::move(biases[i]));
    for (const LayerInputs::Layer* layer : alike[i])
      layer->op.node->setOperandGroup(WeightedOp::kBiasOperand, std::array{constant});
  }
  graph.eraseUnusedConstants();
}

}  // namespace carina::quantize
