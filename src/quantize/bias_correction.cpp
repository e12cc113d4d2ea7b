// SPDX-License-Identifier: Apache-2.0
#include "quantize/bias_correction.hpp"

#include <algorithm>
#include <map>

#include "base/parallel.hpp"

namespace carina::quantize {
namespace {

/// The mean over the samples, shrunk according to its uncertainty: a mean within its own uncertainty says
/// nothing about other inputs.
double trustedMean(std::span<const double> errors) {
  const auto count = static_cast<double>(errors.size());
  double mean = 0, spread = 0;
  for (double error : errors) mean += error / count;
  if (errors.size() == 1 || mean == 0) return mean;
  for (double error : errors) spread += (error - mean) * (error - mean) / (count - 1);
  return mean * std::max(0.0, 1 - spread / count / (mean * mean));
}

/// Weight errors times input means, for kOutputs channels and kSamples samples at a time, whose sums fit in
/// registers. Each sum is accumulated in column order, regardless of the tile size.
template <size_t kOutputs, size_t kSamples>
struct MeanErrors {
  const LayerInputs::Layer& layer;
  const WeightCodes& codes;
  size_t samples;
  double share;

  /// Adds the products for channels from `output` and samples from `sample` on to `means`, [channel, sample].
  void add(size_t output, size_t sample, std::vector<double>& means) const {
    const LayerGeometry& g = layer.geometry;
    const auto weights = layer.op.weight->constant().as<float>();
    const auto values = codes.codes.as<int8_t>();
    const auto channels = static_cast<size_t>(g.channels), outputs = static_cast<size_t>(g.outputs),
               taps = static_cast<size_t>(g.taps), group = output / outputs;
    double sums[kOutputs][kSamples] = {}, scales[kOutputs];
    for (size_t o = 0; o < kOutputs; ++o) {
      scales[o] = codes.scales[codes.perChannel ? output + o : 0];
      for (size_t s = 0; s < kSamples; ++s) sums[o][s] = means[(output + o) * samples + sample + s];
    }
    for (size_t c = 0; c < channels; ++c) {
      // [output, channel of the group, tap]; a transposed layer has [channel, output of the group, tap]
      const size_t row =
          g.transposed ? (group * channels + c) * outputs + output % outputs : output * channels + c;
      const size_t step = (g.transposed ? 1 : channels) * taps;
      for (size_t t = 0; t < taps; ++t) {
        const float* inputs = &layer.means[((group * channels + c) * taps + t) * samples + sample];
        for (size_t o = 0; o < kOutputs; ++o) {
          const size_t at = row * taps + t + o * step;
          const double error = share * (scales[o] * values[at] - weights[at]);
          for (size_t s = 0; s < kSamples; ++s) sums[o][s] += error * inputs[s];
        }
      }
    }
    for (size_t o = 0; o < kOutputs; ++o) {
      for (size_t s = 0; s < kSamples; ++s) means[(output + o) * samples + sample + s] = sums[o][s];
    }
  }

  /// The same for all samples from `sample` on, in tiles that shrink with the number that is left.
  void addAll(size_t output, size_t sample, std::vector<double>& means) const {
    for (; sample + kSamples <= samples; sample += kSamples) add(output, sample, means);
    if constexpr (kSamples > 1)
      MeanErrors<kOutputs, kSamples / 2>{layer, codes, samples, share}.addAll(output, sample, means);
  }
};

/// Adds the mean error of each output channel in each sample, times `share`, to `means`, [channel, sample].
void addMeanErrors(const LayerInputs::Layer& layer, const WeightCodes& codes, size_t samples, double share,
                   std::vector<double>& means) {
  constexpr size_t kOutputs = 4, kSamples = 4;
  const auto outputs = static_cast<size_t>(layer.geometry.outputs);
  const size_t tiles = (outputs + kOutputs - 1) / kOutputs;
  parallelFor(static_cast<size_t>(layer.geometry.groups) * tiles, [&](size_t tile) {
    const size_t group = tile / tiles, first = tile % tiles * kOutputs,
                 end = std::min(first + kOutputs, outputs);
    if (end - first == kOutputs) {
      MeanErrors<kOutputs, kSamples>{layer, codes, samples, share}.addAll(group * outputs + first, 0, means);
      return;
    }
    for (size_t o = first; o < end; ++o)
      MeanErrors<1, kSamples>{layer, codes, samples, share}.addAll(group * outputs + o, 0, means);
  });
}

}  // namespace

void correctBiases(ir::Graph& graph, const LayerInputs& inputs, const LayerCodes& codes) {
  // Layers that use one weight in the same way and share the bias, such as the steps of a recurrence, keep
  // one bias.
  std::map<std::pair<size_t, const ir::Value*>, size_t> found;
  std::vector<std::vector<const LayerInputs::Layer*>> alike;
  for (const LayerInputs::Layer& layer : inputs.layers()) {
    if (!layer.fits) continue;
    const auto [it, isNew] = found.try_emplace({layer.weight, layer.op.bias}, alike.size());
    if (isNew) alike.emplace_back();
    alike[it->second].push_back(&layer);
  }
  std::vector<Tensor> biases(alike.size());
  parallelFor(alike.size(), [&](size_t i) {
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
