// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalisation (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias
// Correction", 2019, section 4.1): between two layers channel i may be divided by any positive s_i, when the
// second layer's weights are multiplied by it and what lies between is positively homogeneous per channel.
// s_i = sqrt(r1_i / r2_i) gives both sides the same weight range sqrt(r1_i * r2_i).
#include <algorithm>
#include <cmath>

#include "aten/conv_op.hpp"
#include "aten/ops.hpp"
#include "quantize/annotate.hpp"
#include "quantize/quantize.hpp"

namespace carina::quantize {
namespace {

constexpr int kMostRounds = 50;
constexpr double kSettled = 1e-3;  // rounds end when no channel moves by more than this share

/// Weight and bias of one layer while they change.
struct Layer {
  WeightedOp op;
  std::optional<aten::ConvOp> conv;  // none for linear
  std::vector<float> weight, bias;
  bool changed = false;

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
  if (!aten::isOperator(&node)) return false;
  switch (aten::opId(&node)) {
    case aten::OpId::Relu:
    case aten::OpId::LeakyRelu:
    case aten::OpId::MaxPool1d:
    case aten::OpId::MaxPool2d:
    case aten::OpId::AvgPool1d:
    case aten::OpId::AvgPool2d:
    case aten::OpId::AdaptiveAvgPool1d:
    case aten::OpId::AdaptiveAvgPool2d:
    case aten::OpId::UpsampleNearest2dVec:
    case aten::OpId::UpsampleBilinear2dVec:
      return true;
    case aten::OpId::ConstantPadNd:
      return ir::scalarReal(ir::dynCast<aten::ConstantPadNd>(&node).value()) == 0;
    default:
      return false;
  }
}

/// The layer that alone reads this layer's result, behind homogeneous operators; null when there is none.
ir::Node* nextLayer(const ir::Node* layer) {
  const ir::Value* value = layer->result();
  while (value->hasOneUse()) {
    const ir::Use use = value->uses().front();
    if (asWeighted(*use.node)) return use.operand == 0 ? use.node : nullptr;
    if (use.operand != 0 || !isHomogeneous(*use.node)) return nullptr;
    value = use.node->result();
  }
  return nullptr;
}

/// One step for one pair. Returns the largest relative change of a channel.
double equalizePair(Layer& before, Layer& after) {
  const auto channels = static_cast<size_t>(before.outputs());
  std::vector<double> made(channels, 0.0), read(channels, 0.0);
  before.forEach([&](size_t out, size_t, float& w) { made[out] = std::max<double>(made[out], std::abs(w)); });
  after.forEach([&](size_t, size_t in, float& w) { read[in] = std::max<double>(read[in], std::abs(w)); });
  std::vector<float> scale(channels, 1.0f);
  double change = 0;
  for (size_t c = 0; c < channels; ++c) {
    const double s = std::sqrt(made[c] / read[c]);
    if (!(made[c] > 0) || !(read[c] > 0) || !std::isfinite(s) || !(s > 0)) continue;
    scale[c] = static_cast<float>(s);
    change = std::max(change, std::abs(s - 1));
  }
  before.forEach([&](size_t out, size_t, float& w) { w /= scale[out]; });
  for (size_t c = 0; c < before.bias.size(); ++c) before.bias[c] /= scale[c];
  after.forEach([&](size_t, size_t in, float& w) { w *= scale[in]; });
  before.changed = after.changed = true;
  return change;
}

std::vector<float> valuesOf(const ir::Value* value) {
  if (!value) return {};
  const auto values = value->constant().as<float>();
  return {values.begin(), values.end()};
}

}  // namespace

size_t equalize(ir::Graph& graph) {
  std::vector<Layer> layers;
  std::unordered_map<const ir::Node*, size_t> indexOf;
  for (ir::Node* node : graph.nodes()) {
    const auto op = asWeighted(*node);
    if (!op || op->weight->dtype() != DType::Float32 || (op->bias && op->bias->dtype() != DType::Float32))
      continue;
    indexOf[node] = layers.size();
    layers.push_back({*op, aten::asConvolution(node), valuesOf(op->weight), valuesOf(op->bias), false});
  }
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < layers.size(); ++i) {
    const ir::Node* next = nextLayer(layers[i].op.node);
    if (!next || indexOf.count(next) == 0) continue;
    Layer& after = layers[indexOf.at(next)];
    // Between a convolution and a linear the channels are not the same dimension.
    if (layers[i].conv.has_value() == after.conv.has_value() && layers[i].outputs() == after.inputs())
      pairs.emplace_back(i, indexOf.at(next));
  }
  for (int round = 0; round < kMostRounds && !pairs.empty(); ++round) {
    double change = 0;
    for (const auto& [before, after] : pairs)
      change = std::max(change, equalizePair(layers[before], layers[after]));
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
