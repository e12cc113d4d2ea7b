// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalisation (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias
// Correction", 2019, section 4.1): between two layers, channel i may be divided by any positive s_i if the
// second layer's weights are multiplied by it and everything in between is positively homogeneous per
// channel. s_i = sqrt(r1_i / r2_i) gives both sides the same weight range sqrt(r1_i * r2_i). Samples
// constrain it: no channel may grow beyond the largest one, so that the scale of the values in between gets
// no coarser, and an upper limit (relu6) must clip exactly the values that it clipped before, so channels
// that reach it keep their scale.
#include <algorithm>
#include <cmath>
#include <limits>

#include "aten/conv_op.hpp"
#include "aten/executor.hpp"
#include "aten/operator_facts.hpp"
#include "quantize/annotate.hpp"
#include "quantize/quantize.hpp"

namespace carina::quantize {
namespace {

constexpr int kMaxRounds = 50;
constexpr double kSettled = 1e-3;  // rounds end when no scale differs from 1 by more than this

/// Weight and bias of one layer during equalisation.
struct Layer {
  WeightedOp op;
  std::optional<aten::ConvOp> conv;  // none for linear
  std::vector<float> weight, bias;
  bool changed = false;
  std::vector<double> peaks;  // largest magnitude per output channel over the samples; empty: unknown

  int64_t outputs() const { return conv ? conv->outputChannels() : op.weight->dim(0); }
  int64_t inputs() const { return conv ? conv->inputChannels() : op.weight->dim(1); }

  /// Calls f(output channel, input channel, element) for every weight.
  template <typename F>
  void forEach(F f) {
    const Shape& shape = op.weight->shape();
    const auto first = static_cast<size_t>(shape[0]), second = static_cast<size_t>(shape[1]);
    const size_t taps = weight.size() / (first * second);
    const auto groups = static_cast<size_t>(conv ? conv->groups : 1);
    for (size_t a = 0; a < first; ++a) {
      const size_t group = a / (first / groups);
      for (size_t b = 0; b < second; ++b) {
        // [Cout, Cin / groups, taps], or transposed [Cin, Cout / groups, taps].
        const size_t other = group * second + b;
        const bool transposed = conv && conv->transposed;
        for (size_t t = 0; t < taps; ++t)
          f(transposed ? other : a, transposed ? a : other, weight[(a * second + b) * taps + t]);
      }
    }
  }
};

/// f(s * x) = s * f(x) for s > 0, channel by channel.
bool isHomogeneous(const ir::Node& node) {
  if (const auto pad = ir::dynCast<aten::ConstantPadNd>(&node)) return ir::scalarReal(pad.value()) == 0;
  return aten::factsOf(node).homogeneous;
}

/// The upper limit of an operator that is otherwise a relu: relu6, or hardtanh from 0.
std::optional<double> upperLimit(const ir::Node& node) {
  if (ir::isa<aten::Relu6>(&node)) return 6;
  if (const auto op = ir::dynCast<aten::Hardtanh>(&node); op && ir::scalarReal(op.minVal()) == 0)
    return ir::scalarReal(op.maxVal());
  return std::nullopt;
}

/// The only layer that reads another's result, and the lowest limit in between.
struct Next {
  ir::Node* layer = nullptr;
  double limit = std::numeric_limits<double>::infinity();
};

/// Looks past homogeneous operators; empty if there is none.
std::optional<Next> nextLayer(const ir::Node* layer) {
  const ir::Value* value = layer->result();
  Next next;
  while (value->hasOneUse()) {
    const ir::Use use = value->uses().front();
    if (use.operand != 0) return std::nullopt;
    if (asWeighted(*use.node)) {
      next.layer = use.node;
      return next;
    }
    const auto limit = upperLimit(*use.node);
    if (limit)
      next.limit = std::min(next.limit, *limit);
    else if (!isHomogeneous(*use.node))
      return std::nullopt;
    value = use.node->result();
  }
  return std::nullopt;
}

struct Pair {
  size_t before, after;
  double limit;
};

/// The smallest factor by which channel c may be divided; empty if it must keep its scale.
std::optional<double> leastScale(const Layer& before, size_t c, double limit) {
  if (before.peaks.empty()) return std::isfinite(limit) ? std::nullopt : std::optional(0.0);
  if (before.peaks[c] >= limit) return std::nullopt;
  const double largest = *std::max_element(before.peaks.begin(), before.peaks.end());
  return before.peaks[c] / std::min(largest, limit);
}

/// One iteration for one pair. Returns the largest relative change of a channel.
double equalizePair(Layer& before, Layer& after, double limit) {
  const auto channels = static_cast<size_t>(before.outputs());
  std::vector<double> made(channels, 0.0), read(channels, 0.0);
  before.forEach([&](size_t out, size_t, float& w) { made[out] = std::max<double>(made[out], std::abs(w)); });
  after.forEach([&](size_t, size_t in, float& w) { read[in] = std::max<double>(read[in], std::abs(w)); });
  std::vector<float> scale(channels, 1.0f);
  double change = 0;
  for (size_t c = 0; c < channels; ++c) {
    const auto least = leastScale(before, c, limit);
    if (!least || !(made[c] > 0) || !(read[c] > 0)) continue;
    const double s = std::max(std::sqrt(made[c] / read[c]), *least);
    if (!std::isfinite(s) || !(s > 0)) continue;
    scale[c] = static_cast<float>(s);
    change = std::max(change, std::abs(s - 1));
  }
  before.forEach([&](size_t out, size_t, float& w) { w /= scale[out]; });
  for (size_t c = 0; c < before.bias.size(); ++c) before.bias[c] /= scale[c];
  for (size_t c = 0; c < before.peaks.size(); ++c) before.peaks[c] /= static_cast<double>(scale[c]);
  after.forEach([&](size_t, size_t in, float& w) { w *= scale[in]; });
  before.changed = after.changed = true;
  return change;
}

std::vector<float> valuesOf(const ir::Value* value) {
  if (!value) return {};
  const auto values = value->constant().as<float>();
  return {values.begin(), values.end()};
}

/// Fills in the layers' peaks.
Status observePeaks(const ir::Graph& graph, std::vector<Layer>& layers, std::span<const Sample> samples,
                    WorkBudget* loops) {
  std::unordered_map<const ir::Value*, Layer*> byResult;
  for (Layer& layer : layers) {
    byResult[layer.op.node->result()] = &layer;
    if (!samples.empty()) layer.peaks.assign(static_cast<size_t>(layer.outputs()), 0.0);
  }
  CARINA_TRY(const aten::Executor executor, aten::Executor::create(graph, aten::Folding::All, loops));
  for (const Sample& sample : samples) {
    CARINA_TRY(const auto outputs, executor.run(sample, [&](const ir::Value& value, const Tensor& tensor) {
      const auto found = byResult.find(&value);
      if (found == byResult.end()) return;
      Layer& layer = *found->second;
      const auto values = tensor.as<float>();
      const auto inner = static_cast<size_t>(layer.op.elementsPerChannel());
      for (size_t i = 0; i < values.size(); ++i) {
        double& peak = layer.peaks[i / inner % layer.peaks.size()];
        peak = std::max<double>(peak, std::abs(values[i]));
      }
    }));
  }
  return {};
}

}  // namespace

Result<size_t> equalize(ir::Graph& graph, std::span<const Sample> samples, WorkBudget* loops) {
  std::vector<Layer> layers;
  std::unordered_map<const ir::Node*, size_t> indexOf;
  for (ir::Node* node : graph.nodes()) {
    const auto op = asWeighted(*node);
    if (!op || op->weight->dtype() != DType::Float32 || (op->bias && op->bias->dtype() != DType::Float32))
      continue;
    indexOf[node] = layers.size();
    layers.push_back({*op, aten::asConvolution(node), valuesOf(op->weight), valuesOf(op->bias), false, {}});
  }
  CARINA_RETURN_IF_ERROR(observePeaks(graph, layers, samples, loops));
  std::vector<Pair> pairs;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto next = nextLayer(layers[i].op.node);
    if (!next || indexOf.count(next->layer) == 0 || (std::isfinite(next->limit) && samples.empty())) continue;
    Layer& after = layers[indexOf.at(next->layer)];
    // Between a convolution and a linear layer, the channels are different dimensions.
    if (layers[i].conv.has_value() == after.conv.has_value() && layers[i].outputs() == after.inputs())
      pairs.push_back({i, indexOf.at(next->layer), next->limit});
  }
  for (int round = 0; round < kMaxRounds && !pairs.empty(); ++round) {
    double change = 0;
    for (const auto& [before, after, limit] : pairs)
      change = std::max(change, equalizePair(layers[before], layers[after], limit));
    if (change < kSettled) break;
  }
  for (Layer& layer : layers) {
    if (!layer.changed) continue;
    ir::Value* weight = graph.addConstant(Tensor::from(layer.op.weight->shape(), layer.weight));
    layer.op.node->setOperandGroup(WeightedOp::kWeightOperand, std::array{weight});
    if (!layer.op.bias) continue;
    ir::Value* bias = graph.addConstant(Tensor::from(layer.op.bias->shape(), layer.bias));
    layer.op.node->setOperandGroup(WeightedOp::kBiasOperand, std::array{bias});
  }
  graph.eraseUnusedConstants();
  return pairs.size();
}

}  // namespace carina::quantize
