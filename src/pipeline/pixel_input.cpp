// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pixel_input.hpp"

#include <algorithm>
#include <array>

#include "aten/conv_op.hpp"
#include "aten/ops.hpp"
#include "quantize/annotate.hpp"

namespace carina::pipeline {
namespace {

using quantize::WeightedOp;

bool allZero(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
}

bool padsNothing(const aten::ConvOp& conv) {
  const auto zero = [](int64_t size) { return size == 0; };
  return std::all_of(conv.padBefore.begin(), conv.padBefore.end(), zero) &&
         std::all_of(conv.padAfter.begin(), conv.padAfter.end(), zero);
}

/// The layer into whose weights the scaling of its input can be folded, for this use.
std::optional<WeightedOp> foldTarget(const ir::Use& use, const PixelScaling& scaling) {
  const auto target = quantize::asWeighted(*use.node);
  if (!target || use.operand != aten::ConvOp::kInputOperand || target->weight->dtype() != DType::Float32 ||
      (target->bias && target->bias->dtype() != DType::Float32))
    return std::nullopt;
  const auto conv = aten::asConvolution(use.node);
  if (!conv) return scaling.uniform() ? target : std::nullopt;
  // Without a batch dimension, dimension 1 is not the channels.
  const bool channels = scaling.uniform() || (conv->spatialRank() == 2 && conv->input->rank() == 4);
  const bool exact = padsNothing(*conv) || allZero(scaling.shift);
  return channels && exact && !conv->transposed ? target : std::nullopt;
}

/// Without transposition, a layer's weights are [outputs, inputs / groups, taps...].
void foldInto(ir::Graph& graph, const WeightedOp& target, const PixelScaling& scaling) {
  const auto conv = aten::asConvolution(target.node);
  const Tensor& before = target.weight->constant();
  const int64_t outputs = before.dim(0), inputs = before.dim(1);
  const int64_t taps = before.numElements() / (outputs * inputs);
  const int64_t perGroup = outputs / (conv ? conv->groups : 1);
  Tensor weight = Tensor::uninitialized(DType::Float32, before.shape());
  Tensor bias = Tensor::zeros(DType::Float32, {outputs});
  const auto from = before.as<float>();
  const auto to = weight.mutableAs<float>(), sums = bias.mutableAs<float>();
  size_t at = 0;
  for (int64_t o = 0; o < outputs; ++o) {
    double sum = target.bias ? target.bias->constant().realAt(o) : 0;
    for (int64_t i = 0; i < inputs; ++i) {
      const auto channel = scaling.uniform() ? size_t{0} : static_cast<size_t>(o / perGroup * inputs + i);
      for (int64_t t = 0; t < taps; ++t, ++at) {
        to[at] = static_cast<float>(from[at] * scaling.scale[channel]);
        sum += from[at] * scaling.shift[channel];
      }
    }
    sums[static_cast<size_t>(o)] = static_cast<float>(sum);
  }
  target.node->setOperandGroup(WeightedOp::kWeightOperand, std::array{graph.addConstant(std::move(weight))});
  if (target.bias || !allZero(scaling.shift))
    target.node->setOperandGroup(WeightedOp::kBiasOperand, std::array{graph.addConstant(std::move(bias))});
}

std::vector<float> asFloats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

ir::Value* scaled(ir::Builder& builder, ir::Value* pixels, const PixelScaling& scaling) {
  if (scaling.uniform()) {
    ir::Value* result = aten::MulScalar::create(builder, pixels, scaling.scale[0]);
    if (allZero(scaling.shift)) return result;
    return aten::AddScalar::create(builder, result, scaling.shift[0]);
  }
  const auto channels = static_cast<int64_t>(scaling.scale.size());
  ir::Value* weight = builder.constant(Tensor::from({channels, 1, 1, 1}, asFloats(scaling.scale)));
  ir::Value* bias = builder.constant(Tensor::from({channels}, asFloats(scaling.shift)));
  const ir::Ints ones(2, 1), zeros(2, 0);
  return aten::Conv2d::create(builder, pixels, weight, bias, ones, zeros, ones, channels);
}

}  // namespace

void normalisePixels(ir::Graph& graph, ir::Value* pixels, const PixelScaling& scaling) {
  std::vector<ir::Use> others;
  const std::vector<ir::Use> uses = pixels->uses();
  for (const ir::Use& use : uses) {
    if (const auto target = foldTarget(use, scaling)) {
      foldInto(graph, *target, scaling);
    } else {
      others.push_back(use);
    }
  }
  graph.eraseUnusedConstants();
  if (others.empty() && !pixels->isGraphOutput()) return;
  ir::Node* maker = pixels->producer();
  ir::Builder builder = ir::Builder::afterNode(maker);
  ir::Value* result = scaled(builder, pixels, scaling);
  for (const ir::Use& use : others) use.node->setOperand(use.operand, result);
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i] == pixels) graph.setOutput(i, result);
  }
}

}  // namespace carina::pipeline
