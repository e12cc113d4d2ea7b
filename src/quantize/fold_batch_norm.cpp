// SPDX-License-Identifier: Apache-2.0
// Batch norms with fixed statistics are folded into the preceding operator or the following ones, or become a
// depthwise 1x1 convolution; so do products and sums with constants.
#include "quantize/fold_batch_norm.hpp"

#include <algorithm>
#include <cmath>

#include "aten/conv_op.hpp"
#include "aten/ops.hpp"
#include "quantize/affine.hpp"
#include "quantize/annotate.hpp"
#include "quantize/quantize.hpp"
#include "quantize/whole_dim.hpp"

namespace carina::quantize {
namespace {

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
                  "channel {} of a batch norm has variance {}: its scale is not a number", c, variance[c])
          .at(norm.node->where())
          .withRemedy("check the trained model: variances cannot be negative");
    }
    affine.scale.push_back(scale);
    affine.shift.push_back((norm.beta ? norm.beta->constant().as<float>()[c] : 0.0f) - mean[c] * scale);
  }
  return affine;
}

/// The weight with every element of output channel c times scale[c]. In a transposed convolution, an
/// element's channel is group * (Cout / groups) + index along dimension 1.
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

/// The convolution or linear layer whose channels are dimension `channels` of `input`: it produces the input,
/// possibly in another shape or order (a linear layer with one more dimension than a batch norm accepts), and
/// nothing else reads it.
std::optional<WeightedOp> foldTarget(const ir::Value* input, int64_t channels) {
  for (const ir::Value* value = input; value->hasOneUse() && value->producer();
       value = value->producer()->operands()[0]) {
    const ir::Node& node = *value->producer();
    if (const auto target = asWeighted(node)) {
      const bool fits = target->weight->dtype() == DType::Float32 && target->channelDim() == channels;
      return fits ? target : std::nullopt;
    }
    const auto before = wholeDimBefore(node, channels);
    if (!before || before->operand != 0) break;
    channels = before->dim;
  }
  return std::nullopt;
}

/// Folds `node`, which reads `input`, into the weights of `target`.
void foldInto(const WeightedOp& target, ir::Node* node, ir::Value* input, const Affine& affine) {
  ir::Graph& graph = target.node->graph();
  const auto conv = aten::asConvolution(target.node);
  Tensor bias = Tensor::from(Shape{static_cast<int64_t>(affine.shift.size())}, affine.shift);
  if (target.bias) {
    const auto before = target.bias->constant().as<float>();
    const auto values = bias.mutableAs<float>();
    for (size_t c = 0; c < values.size(); ++c) values[c] += before[c] * affine.scale[c];
  }
  if (std::any_of(affine.scale.begin(), affine.scale.end(), [](float scale) { return scale != 1; })) {
    ir::Value* weight = graph.addConstant(scaledWeight(target.weight->constant(), affine.scale, conv));
    target.node->setOperandGroup(WeightedOp::kWeightOperand, std::array{weight});
  }
  ir::Value* biasValue = graph.addConstant(std::move(bias));
  target.node->setOperandGroup(WeightedOp::kBiasOperand, std::array{biasValue});
  replaceByValue(node, input);
}

/// input [N, C, ...] * scale + shift as a depthwise convolution with one tap (over a view with one or two
/// spatial dimensions).
ir::Value* depthwise(ir::Builder& builder, ir::Value* input, const Affine& affine) {
  const auto channels = static_cast<int64_t>(affine.scale.size());
  const Shape shape = input->shape();
  const bool flat = shape.size() == 2 || shape.size() > 4;
  if (flat) {
    const int64_t rest = numElements(shape) / std::max<int64_t>(shape[0] * channels, 1);
    input = aten::View::create(builder, input, ir::Ints{shape[0], channels, rest});
  }
  const size_t spatial = static_cast<size_t>(input->rank()) - 2;
  Shape weightShape(spatial + 2, 1);
  weightShape[0] = channels;
  ir::Value* weight = builder.constant(Tensor::from(weightShape, affine.scale));
  ir::Value* bias = builder.constant(Tensor::from(Shape{channels}, affine.shift));
  const ir::Ints ones(spatial, 1), zeros(spatial, 0);
  ir::Value* result =
      aten::Convolution::create(builder, input, weight, bias, ones, zeros, ones, false, zeros, channels);
  return flat ? aten::View::create(builder, result, shape) : result;
}

/// input * c, input + c, input - c or input / c.
struct ConstantOp {
  ir::Node* node = nullptr;
  ir::Value* input = nullptr;
  const ir::Value* constant = nullptr;
  enum class Kind : uint8_t { Product, Quotient, Sum, Difference } kind = Kind::Product;
};

/// Empty if no operand is a float32 constant or the other one does not have the result's shape.
std::optional<ConstantOp> asConstantOp(ir::Node* node) {
  using Kind = ConstantOp::Kind;
  ConstantOp op{node, nullptr, nullptr, Kind::Product};
  const auto take = [&](ir::Value* input, const ir::Value* constant, Kind kind) {
    if (op.input || input->isConstant() || !constant->isConstant() || constant->dtype() != DType::Float32 ||
        input->dtype() != DType::Float32 || input->shape() != node->result()->shape())
      return;
    op.input = input, op.constant = constant, op.kind = kind;
  };
  if (const auto product = ir::dynCast<aten::MulTensor>(node)) {
    take(product.self(), product.other(), Kind::Product);
    take(product.other(), product.self(), Kind::Product);
  } else if (const auto quotient = ir::dynCast<aten::DivTensor>(node)) {
    take(quotient.self(), quotient.other(), Kind::Quotient);
  } else if (const auto sum = ir::dynCast<aten::AddTensor>(node); sum && ir::scalarReal(sum.alpha()) == 1) {
    take(sum.self(), sum.other(), Kind::Sum);
    take(sum.other(), sum.self(), Kind::Sum);
  } else if (const auto less = ir::dynCast<aten::SubTensor>(node);
             less && ir::scalarReal(less.alpha()) == 1) {
    take(less.self(), less.other(), Kind::Difference);
  }
  return op.input ? std::optional(op) : std::nullopt;
}

/// The dimension of the input along which the constant varies; empty if there are several. For a
/// single-element constant: `otherwise`.
std::optional<int64_t> dimensionOf(const ConstantOp& op, int64_t otherwise) {
  const Shape& shape = op.constant->shape();
  const int64_t ahead = op.input->rank() - static_cast<int64_t>(shape.size());
  if (op.constant->numElements() == 1) return otherwise;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == op.constant->numElements()) return ahead + static_cast<int64_t>(d);
  }
  return std::nullopt;
}

/// The operator's function for each of `channels` channels; empty if a value is not finite.
std::optional<Affine> affineOf(const ConstantOp& op, size_t channels) {
  const auto numbers = op.constant->constant().as<float>();
  Affine affine{std::vector<float>(channels, 1.0f), std::vector<float>(channels, 0.0f)};
  for (size_t c = 0; c < channels; ++c) {
    const float number = numbers[numbers.size() == 1 ? 0 : c];
    switch (op.kind) {
      case ConstantOp::Kind::Product:
        affine.scale[c] = number;
        break;
      case ConstantOp::Kind::Quotient:
        affine.scale[c] = 1 / number;
        break;
      case ConstantOp::Kind::Sum:
        affine.shift[c] = number;
        break;
      case ConstantOp::Kind::Difference:
        affine.shift[c] = -number;
        break;
    }
    if (!std::isfinite(affine.scale[c]) || !std::isfinite(affine.shift[c])) return std::nullopt;
  }
  return affine;
}

/// Folds the constant into the weights of the convolution or linear layer that produces the input. Returns
/// whether it was folded.
bool foldConstant(const ConstantOp& op) {
  std::optional<WeightedOp> target;
  for (int64_t d = op.input->rank(); !target && d-- > 0;) {
    if (dimensionOf(op, d) == d) target = foldTarget(op.input, d);
  }
  if (!target) return false;
  const auto affine = affineOf(op, static_cast<size_t>(target->node->result()->dim(target->channelDim())));
  if (affine) foldInto(*target, op.node, op.input, *affine);
  return affine.has_value();
}

bool isScale(const ConstantOp& op) {
  return op.kind == ConstantOp::Kind::Product || op.kind == ConstantOp::Kind::Quotient;
}

/// A product and a sum with constants of the same channels, as they follow norms and precede the first layer
/// of an image network.
struct ConstantPair {
  ir::Node* first = nullptr;
  ir::Value* input = nullptr;  // of the first one
  int64_t dim = 0;             // along which the constants vary
  Affine affine;
};

/// The pair whose second operator this is; empty if there is none or a value is not finite.
std::optional<ConstantPair> pairOf(const ConstantOp& second) {
  const ir::Value* between = second.input;
  const auto first =
      between->producer() && between->hasOneUse() ? asConstantOp(between->producer()) : std::nullopt;
  if (!first || isScale(*first) == isScale(second)) return std::nullopt;
  const auto dim = dimensionOf(*first, -1);
  if (!dim || dim != dimensionOf(second, -1) || *dim < 0) return std::nullopt;
  const auto channels = static_cast<size_t>(between->dim(*dim));
  auto affine = affineOf(*first, channels);
  const auto after = affineOf(second, channels);
  if (!affine || !after) return std::nullopt;
  for (size_t c = 0; c < channels; ++c) {
    affine->scale[c] *= after->scale[c];
    affine->shift[c] = affine->shift[c] * after->scale[c] + after->shift[c];
    if (!std::isfinite(affine->scale[c]) || !std::isfinite(affine->shift[c])) return std::nullopt;
  }
  return ConstantPair{first->node, first->input, *dim, std::move(*affine)};
}

/// Folds the constant, or the pair, into the weights of the layers that read the result. Returns whether it
/// was folded.
bool foldConstantForward(const ConstantOp& op, const std::optional<ConstantPair>& pair, double mostNoise) {
  if (pair) {
    if (!foldIntoReaders(op.node, pair->input, pair->dim, pair->affine, mostNoise)) return false;
    pair->first->graph().erase(pair->first);
    return true;
  }
  for (int64_t d = op.input->rank(); d-- > 0;) {
    if (dimensionOf(op, d) != d) continue;
    const auto affine = affineOf(op, static_cast<size_t>(op.input->dim(d)));
    if (affine && foldIntoReaders(op.node, op.input, d, *affine, mostNoise)) return true;
  }
  return false;
}

/// Turns a pair into one depthwise convolution, which rounds once and takes fewer cycles than the two. With
/// few elements per channel, it has more to read: a weight, a bias and a scale per channel.
void joinConstants(const ConstantOp& second, const ConstantPair& pair) {
  constexpr int64_t kFewElements = 8;
  const Shape shape = second.input->shape();
  const int64_t last = static_cast<int64_t>(shape.size()) - 1, channels = second.input->dim(pair.dim);
  const int64_t elements = second.input->numElements() / channels;
  if ((pair.dim != last && (pair.dim != 1 || last < 2)) || elements < kFewElements) return;
  ir::Builder b = ir::Builder::beforeNode(second.node);
  ir::Value* input = pair.input;
  if (pair.dim == last) {
    const ir::Ints swapped{0, 2, 1};
    input = aten::View::create(b, input, ir::Ints{1, elements, channels});
    input = depthwise(b, aten::Permute::create(b, input, swapped), pair.affine);
    input = aten::View::create(b, aten::Permute::create(b, input, swapped), shape);
  } else {
    input = depthwise(b, input, pair.affine);
  }
  replaceByValue(second.node, input);
  pair.first->graph().erase(pair.first);
}

/// Folds one product or sum with a constant where that is possible.
void foldOrJoin(const ConstantOp& op, double mostNoise) {
  if (foldConstant(op)) return;
  const auto pair = pairOf(op);
  if (!foldConstantForward(op, pair, mostNoise) && pair) joinConstants(op, *pair);
}

/// Folds the batch norms among the wanted nodes. With `mostNoise` (foldIntoReaders()) also into the layers
/// that follow, and products and sums with constants as well.
Status foldNorms(ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted,
                 std::optional<double> mostNoise) {
  for (ir::Node* node : graph.nodes()) {
    if (!wanted(*node)) continue;
    if (const auto constant = mostNoise ? asConstantOp(node) : std::nullopt) {
      foldOrJoin(*constant, *mostNoise);
      continue;
    }
    const auto norm = asBatchNorm(node);
    if (!norm || norm->input->dtype() != DType::Float32 || norm->input->rank() < 2) continue;
    bool extraResults = false;
    for (size_t i = 1; i < node->results().size(); ++i) extraResults |= !node->result(i)->unused();
    if (extraResults) continue;
    CARINA_TRY(const Affine affine, affineOf(*norm));
    // Dimension 1, even for results of convolutions without a batch dimension, whose channels are another
    // dimension.
    if (const auto target = foldTarget(norm->input, 1)) {
      foldInto(*target, node, norm->input, affine);
    } else if (!mostNoise || !foldIntoReaders(node, norm->input, 1, affine, *mostNoise)) {
      ir::Builder builder = ir::Builder::beforeNode(node);
      replaceByValue(node, depthwise(builder, norm->input, affine));
    }
  }
  graph.eraseUnusedConstants();
  return {};
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
  return foldNorms(graph, wanted, std::nullopt);
}

Status foldBatchNorms(ir::Graph& graph, double mostNoise) {
  return foldNorms(
      graph, [](const ir::Node&) { return true; }, mostNoise);
}

}  // namespace carina::quantize
