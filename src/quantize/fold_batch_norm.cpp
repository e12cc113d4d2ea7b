// SPDX-License-Identifier: Apache-2.0
// Batch norms with fixed statistics become part of the operator in front of them, or a depthwise 1x1
// convolution.
#include "quantize/fold_batch_norm.hpp"

#include <cmath>

#include "aten/conv_op.hpp"
#include "aten/movement.hpp"
#include "aten/ops.hpp"
#include "quantize/annotate.hpp"
#include "quantize/quantize.hpp"

namespace carina::quantize {
namespace {

/// y = x * scale + shift per channel.
struct Affine {
  std::vector<float> scale, shift;
};

Result<Affine> affineOf(const BatchNormOp& norm) {
  for (const ir::Value* value : {norm.gamma, norm.beta, norm.mean, norm.variance}) {
    if (value && (!value->isConstant() || value->dtype() != DType::Float32)) {
      return fail(Code::UnusableQuantization, "the parameters of a batch norm must be float32 constants")
          .at(norm.node->where())
          .withRemedy("export the model in eval mode (model.eval()) with its statistics as buffers");
    }
  }
  const auto mean = norm.mean->constant().as<float>(), variance = norm.variance->constant().as<float>();
  Affine affine;
  for (size_t c = 0; c < mean.size(); ++c) {
    const float inverse = 1.0f / std::sqrt(variance[c] + static_cast<float>(norm.eps));
    const float scale = (norm.gamma ? norm.gamma->constant().as<float>()[c] : 1.0f) * inverse;
    if (!std::isfinite(scale)) {
      return fail(Code::UnusableQuantization,
                  "channel {} of a batch norm has variance {}: its scale is no number", c, variance[c])
          .at(norm.node->where())
          .withRemedy("check the trained model: variances cannot be negative");
    }
    affine.scale.push_back(scale);
    affine.shift.push_back((norm.beta ? norm.beta->constant().as<float>()[c] : 0.0f) - mean[c] * scale);
  }
  return affine;
}

/// weight with every element of output channel c times scale[c]. The channel of a transposed convolution's
/// element is group * (Cout / groups) + index along dimension 1.
Tensor scaledWeight(const Tensor& weight, const std::vector<float>& scale,
                    const std::optional<aten::ConvOp>& conv) {
  Tensor result = Tensor::uninitialized(DType::Float32, weight.shape());
  const auto from = weight.as<float>();
  const auto to = result.mutableAs<float>();
  if (!conv || !conv->transposed) {
    const size_t perChannel = from.size() / scale.size();
    for (size_t c = 0; c < scale.size(); ++c) {
      for (size_t i = c * perChannel; i < (c + 1) * perChannel; ++i) to[i] = from[i] * scale[c];
    }
    return result;
  }
  const auto outPerGroup = static_cast<size_t>(weight.dim(1));
  const size_t inPerGroup = static_cast<size_t>(weight.dim(0) / conv->groups);
  const size_t taps = from.size() / (static_cast<size_t>(weight.dim(0)) * outPerGroup);
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t input = i / (outPerGroup * taps), output = i / taps % outPerGroup;
    to[i] = from[i] * scale[input / inPerGroup * outPerGroup + output];
  }
  return result;
}

/// Elements from one index of dimension `dim` to the next, in a dense tensor.
int64_t strideOf(const Shape& shape, int64_t dim) {
  int64_t stride = 1;
  for (size_t d = static_cast<size_t>(dim) + 1; d < shape.size(); ++d) stride *= shape[d];
  return stride;
}

/// Where a node only gives its operand another shape or order, the dimension of the operand that dimension
/// `dim` of the result is.
std::optional<int64_t> sameDimBefore(const ir::Node& node, int64_t dim) {
  const auto moves = aten::movements(node);
  if (!moves.ok() || !*moves || (*moves)->size() != 1) return std::nullopt;
  const aten::Movement& move = (**moves)[0];
  const Shape& operand = node.operands()[move.operand]->shape();
  const bool reshapes = move.isReshape(operand);
  if (!reshapes && (move.shape != move.result || move.offset != 0 ||
                    node.result()->numElements() != node.operands()[move.operand]->numElements()))
    return std::nullopt;
  const int64_t stride = reshapes ? strideOf(move.result, dim) : move.strides[static_cast<size_t>(dim)];
  for (int64_t d = 0; d < static_cast<int64_t>(operand.size()); ++d) {
    if (operand[static_cast<size_t>(d)] == node.result()->dim(dim) && strideOf(operand, d) == stride)
      return d;
  }
  return std::nullopt;
}

/// The convolution or linear in whose weights the norm can go: it makes what the norm reads, maybe in another
/// shape or order (a linear layer with one more dimension than the norm takes), and nobody else reads it.
std::optional<WeightedOp> foldTarget(const BatchNormOp& norm) {
  int64_t channels = 1;  // of the norm; of a convolution without batch dimension these are not the channels
  for (const ir::Value* value = norm.input; value->hasOneUse() && value->producer();
       value = value->producer()->operands()[0]) {
    const ir::Node& node = *value->producer();
    if (const auto target = asWeighted(node)) {
      const bool fits = target->weight->dtype() == DType::Float32 && target->channelDim() == channels;
      return fits ? target : std::nullopt;
    }
    const auto before = sameDimBefore(node, channels);
    if (!before) break;
    channels = *before;
  }
  return std::nullopt;
}

void foldInto(const WeightedOp& target, const BatchNormOp& norm, const Affine& affine) {
  ir::Graph& graph = target.node->graph();
  const auto conv = aten::asConvolution(target.node);
  Tensor bias = Tensor::from(Shape{static_cast<int64_t>(affine.shift.size())}, affine.shift);
  if (target.bias) {
    const auto before = target.bias->constant().as<float>();
    const auto values = bias.mutableAs<float>();
    for (size_t c = 0; c < values.size(); ++c) values[c] += before[c] * affine.scale[c];
  }
  ir::Value* weight = graph.addConstant(scaledWeight(target.weight->constant(), affine.scale, conv));
  ir::Value* biasValue = graph.addConstant(std::move(bias));
  target.node->setOperandGroup(WeightedOp::kWeightOperand, std::array{weight});
  target.node->setOperandGroup(WeightedOp::kBiasOperand, std::array{biasValue});
  graph.replaceAllUses(norm.node->result(0), norm.input);
  graph.erase(norm.node);
}

/// x * scale + shift as a depthwise convolution with one tap (over a view with at least one spatial
/// dimension).
void replaceByDepthwise(const BatchNormOp& norm, const Affine& affine) {
  ir::Builder builder = ir::Builder::beforeNode(norm.node);
  const auto channels = static_cast<int64_t>(affine.scale.size());
  const Shape shape = norm.input->shape();
  const size_t spatial = std::max<size_t>(shape.size() - 2, 1);
  ir::Value* input = norm.input;
  if (shape.size() == 2) input = aten::View::create(builder, input, ir::Ints{shape[0], shape[1], 1});
  Shape weightShape(spatial + 2, 1);
  weightShape[0] = channels;
  ir::Value* weight = builder.constant(Tensor::from(weightShape, affine.scale));
  ir::Value* bias = builder.constant(Tensor::from(Shape{channels}, affine.shift));
  const ir::Ints ones(spatial, 1), zeros(spatial, 0);
  ir::Value* result =
      aten::Convolution::create(builder, input, weight, bias, ones, zeros, ones, false, zeros, channels);
  if (shape.size() == 2) result = aten::View::create(builder, result, shape);
  ir::Graph& graph = norm.node->graph();
  graph.replaceAllUses(norm.node->result(0), result);
  graph.erase(norm.node);
}

}  // namespace

std::optional<BatchNormOp> asBatchNorm(ir::Node* node) {
  if (auto op = ir::dynCast<aten::BatchNorm>(node);
      op && !op.training() && op.runningMean() && op.runningVar()) {
    return BatchNormOp{node, op.input(), op.weight(), op.bias(), op.runningMean(), op.runningVar(), op.eps()};
  }
  if (auto op = ir::dynCast<aten::PrivateNativeBatchNormLegitNoTraining>(node)) {
    return BatchNormOp{node, op.input(), op.weight(), op.bias(), op.runningMean(), op.runningVar(), op.eps()};
  }
  return std::nullopt;
}

Status foldBatchNormsOf(ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted) {
  for (ir::Node* node : graph.nodes()) {
    if (!wanted(*node)) continue;
    const auto norm = asBatchNorm(node);
    if (!norm || norm->input->dtype() != DType::Float32 || norm->input->rank() < 2) continue;
    bool extraResults = false;
    for (size_t i = 1; i < node->results().size(); ++i) extraResults |= !node->result(i)->unused();
    if (extraResults) continue;
    CARINA_TRY(const Affine affine, affineOf(*norm));
    if (const auto target = foldTarget(*norm))
      foldInto(*target, *norm, affine);
    else
      replaceByDepthwise(*norm, affine);
  }
  graph.eraseUnusedConstants();
  return {};
}

Status foldBatchNorms(ir::Graph& graph) {
  return foldBatchNormsOf(graph, [](const ir::Node&) { return true; });
}

}  // namespace carina::quantize
