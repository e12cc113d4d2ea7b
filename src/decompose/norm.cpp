// SPDX-License-Identifier: Apache-2.0
// Softmax as reductions and pointwise operators, each of which gets its own range when the network is
// quantized. Normalisations become a normalisation of rows without weights (layer_norm or rms_norm) and
// pointwise operators.
#include <algorithm>
#include <limits>

#include "aten/ops.hpp"
#include "decompose/arithmetic.hpp"
#include "decompose/dims.hpp"
#include "decompose/norms.hpp"
#include "decompose/rewrites.hpp"
#include "decompose/softmax_mask.hpp"

namespace carina::decompose {
namespace {

ir::Value* meanOver(ir::Builder& b, ir::Value* x, ir::Ints dims) {
  return aten::MeanDim::create(b, x, std::move(dims), true);
}

/// weight [C] as [1, C, 1, ...] for a tensor of this rank.
ir::Value* perChannel(ir::Builder& b, ir::Value* weight, int64_t rank) {
  ir::Ints shape(static_cast<size_t>(rank), 1);
  shape[1] = weight->numElements();
  return aten::View::create(b, weight, shape);
}

ir::Value* scaledAndShifted(ir::Builder& b, ir::Value* x, ir::Value* weight, ir::Value* bias) {
  if (weight) x = mul(b, x, weight);
  if (bias) x = add(b, x, bias);
  return x;
}

/// Whether the statistics that a norm also returns are unused.
bool onlyFirstUsed(const ir::Node& node) {
  return std::all_of(node.results().begin() + 1, node.results().end(),
                     [](const ir::Value* v) { return v->unused(); });
}

template <typename Op>
ir::Value* rewriteSoftmax(ir::Builder& b, Op op) {
  if (isQuantizedAsUnit(op) || op.self()->dtype() != DType::Float32) return nullptr;
  return softmaxOf(b, op.self(), op.dim());
}

/// x - max - log(sum(exp(x - max)))
template <typename Op>
ir::Value* rewriteLogSoftmax(ir::Builder& b, Op op) {
  if (isQuantizedAsUnit(op) || op.self()->dtype() != DType::Float32) return nullptr;
  const ir::Ints dims{op.dim()};
  ir::Value* shifted = sub(b, op.self(), aten::Amax::create(b, op.self(), dims, true));
  ir::Value* sum = aten::SumDimIntList::create(b, aten::Exp::create(b, shifted), dims, true);
  return sub(b, shifted, aten::Log::create(b, sum));
}

template <typename Op>
ir::Value* rewriteLayerNorm(ir::Builder& b, Op op) {
  const bool plain = std::is_same_v<Op, aten::LayerNorm> && !op.weight() && !op.bias();
  if (plain || !onlyFirstUsed(*op.node())) return nullptr;
  ir::Value* x = op.input();
  const auto count = static_cast<int64_t>(op.normalizedShape().size());
  ir::Ints last;
  for (int64_t d = x->rank() - count; d < x->rank(); ++d) last.push_back(d);
  ir::Value* result = normalizedOver(b, x, last, op.eps(), Centred::Yes);
  return scaledAndShifted(b, result, op.weight(), op.bias());
}

ir::Value* rewriteRmsNorm(ir::Builder& b, aten::RmsNorm op) {
  if (!op.weight()) return nullptr;
  ir::Value* result = aten::RmsNorm::create(b, op.input(), nullptr, op.normalizedShape(), op.eps());
  return mul(b, result, op.weight());
}

/// Groups of channels as one dimension: [N, groups, everything else].
ir::Value* groupNormOf(ir::Builder& b, ir::Value* x, int64_t groups, ir::Value* weight, ir::Value* bias,
                       double eps) {
  const Shape shape = x->shape();
  const int64_t inside = x->numElements() / (shape[0] * groups);
  ir::Value* grouped = aten::View::create(b, x, ir::Ints{shape[0], groups, inside});
  ir::Value* result = aten::View::create(b, normalizedOver(b, grouped, {2}, eps, Centred::Yes), shape);
  const int64_t rank = x->rank();
  return scaledAndShifted(b, result, weight ? perChannel(b, weight, rank) : nullptr,
                          bias ? perChannel(b, bias, rank) : nullptr);
}

template <typename Op>
ir::Value* rewriteGroupNorm(ir::Builder& b, Op op) {
  if (isQuantizedAsUnit(op) || !onlyFirstUsed(*op.node())) return nullptr;
  int64_t groups = 0;
  if constexpr (std::is_same_v<Op, aten::GroupNorm>)
    groups = op.numGroups();
  else
    groups = op.group();
  return groupNormOf(b, op.input(), groups, op.weight(), op.bias(), op.eps());
}

ir::Value* rewriteInstanceNorm(ir::Builder& b, aten::InstanceNorm op) {
  if (!op.useInputStats() || isQuantizedAsUnit(op)) return nullptr;
  return groupNormOf(b, op.input(), op.input()->dim(1), op.weight(), op.bias(), op.eps());
}

/// Batch norm with the statistics of the batch: over all dimensions but the channels.
ir::Value* rewriteBatchStatistics(ir::Builder& b, aten::BatchNorm op) {
  if ((!op.training() && op.runningMean()) || isQuantizedAsUnit(op)) return nullptr;
  ir::Value* x = op.input();
  ir::Ints dims = numbersBelow(x->rank());
  dims.erase(dims.begin() + 1);
  return scaledAndShifted(b, normalizedOver(b, x, dims, op.eps(), Centred::Yes),
                          op.weight() ? perChannel(b, op.weight(), x->rank()) : nullptr,
                          op.bias() ? perChannel(b, op.bias(), x->rank()) : nullptr);
}

/// Batch norm in evaluation with computed parameters, which cannot be folded.
ir::Value* rewriteComputedBatchNorm(ir::Builder& b, ir::Node* node) {
  ir::Value *mean = nullptr, *variance = nullptr, *weight = nullptr, *bias = nullptr;
  double eps = 0;
  if (const auto plain = ir::dynCast<aten::BatchNorm>(node); plain && !plain.training()) {
    mean = plain.runningMean(), variance = plain.runningVar(), eps = plain.eps();
    weight = plain.weight(), bias = plain.bias();
  } else if (const auto op = ir::dynCast<aten::PrivateNativeBatchNormLegitNoTraining>(node)) {
    mean = op.runningMean(), variance = op.runningVar(), eps = op.eps();
    weight = op.weight(), bias = op.bias();
  }
  const auto known = [](const ir::Value* v) { return !v || v->isConstant(); };
  if (!mean || !variance || isQuantizedAsUnit(*node) || !onlyFirstUsed(*node)) return nullptr;
  if (known(mean) && known(variance) && known(weight) && known(bias)) return nullptr;
  ir::Value* x = node->operands()[0];
  const auto wide = [&](ir::Value* v) { return v ? perChannel(b, v, x->rank()) : nullptr; };
  ir::Value* shifted = aten::AddScalar::create(b, variance, eps);
  ir::Value* factor = aten::Rsqrt::create(b, shifted);
  ir::Value* result = mul(b, sub(b, x, wide(mean)), wide(factor));
  return scaledAndShifted(b, result, wide(weight), wide(bias));
}

/// Sum of squared differences from the mean over max(0, N - correction).
ir::Value* varianceOf(ir::Builder& b, const ir::OpView& op, const std::optional<ir::Ints>& dims,
                      double correction, bool keepdim, bool root) {
  ir::Value* x = op->operands()[0];
  if (isQuantizedAsUnit(op) || x->dtype() != DType::Float32) return nullptr;
  const ir::Ints over = dims && !dims->empty() ? *dims : numbersBelow(x->rank());
  int64_t count = 1;
  for (int64_t d : over) count *= x->dim(wrapped(d, x->rank()));
  if (static_cast<double>(count) <= correction) return nullptr;
  ir::Value* centred = sub(b, x, meanOver(b, x, over));
  ir::Value* square = mul(b, centred, centred);
  ir::Value* mean = aten::MeanDim::create(b, square, over, keepdim);
  const double factor = static_cast<double>(count) / (static_cast<double>(count) - correction);
  ir::Value* result = factor == 1 ? mean : aten::MulScalar::create(b, mean, factor);
  return root ? aten::Sqrt::create(b, result) : result;
}

ir::Value* rewriteVariance(ir::Builder& b, ir::Node* node) {
  const auto correctionOf = [](const ir::Attribute& value) {
    return std::holds_alternative<std::monostate>(value) ? 1.0 : ir::scalarReal(value);
  };
  if (const auto op = ir::dynCast<aten::VarCorrection>(node))
    return varianceOf(b, op, op.dim(), correctionOf(op.correction()), op.keepdim(), false);
  if (const auto op = ir::dynCast<aten::StdCorrection>(node))
    return varianceOf(b, op, op.dim(), correctionOf(op.correction()), op.keepdim(), true);
  if (const auto op = ir::dynCast<aten::VarDim>(node))
    return varianceOf(b, op, op.dim(), op.unbiased() ? 1 : 0, op.keepdim(), false);
  if (const auto op = ir::dynCast<aten::StdDim>(node))
    return varianceOf(b, op, op.dim(), op.unbiased() ? 1 : 0, op.keepdim(), true);
  if (const auto op = ir::dynCast<aten::Var>(node))
    return varianceOf(b, op, std::nullopt, op.unbiased() ? 1 : 0, false, false);
  if (const auto op = ir::dynCast<aten::Std>(node))
    return varianceOf(b, op, std::nullopt, op.unbiased() ? 1 : 0, false, true);
  return nullptr;
}

/// softmax(x - m) = softmax(x) if m is the same for all elements along the dimension, as the largest one is.
ir::Value* unshifted(ir::Value* input, int64_t dim) {
  const auto shift = ir::producerAs<aten::SubTensor>(input);
  if (!shift || ir::scalarReal(shift.alpha()) != 1 || shift.self()->type != input->type) return input;
  const int64_t rank = input->rank(), at = wrapped(dim, rank) - (rank - shift.other()->rank());
  const bool same = rank > 0 && (at < 0 || shift.other()->dim(at) == 1);
  return same ? shift.self() : input;
}

}  // namespace

namespace {

/// exp(x) / sum(exp(x)) written out, as it often is with masks.
ir::Value* rewriteWrittenSoftmax(ir::Builder& b, aten::DivTensor op) {
  const auto exponential = ir::producerAs<aten::Exp>(op.self());
  if (!exponential || isQuantizedAsUnit(op) || op.self()->dtype() != DType::Float32) return nullptr;
  ir::Value* total = op.other();
  if (const auto unsqueezed = ir::producerAs<aten::Unsqueeze>(total)) total = unsqueezed.self();
  const auto sum = ir::producerAs<aten::SumDimIntList>(total);
  if (!sum || sum.self() != op.self() || !sum.dim() || sum.dim()->size() != 1) return nullptr;
  const int64_t dim = wrapped((*sum.dim())[0], op.self()->rank());
  Shape places = op.self()->shape();
  places[static_cast<size_t>(dim)] = 1;
  if (op.other()->shape() != places) return nullptr;
  return aten::SoftmaxInt::create(b, exponential.self(), dim);
}

}  // namespace

ir::Value* softmaxOf(ir::Builder& b, ir::Value* input, int64_t dim) {
  const ir::Ints dims{dim};
  const auto [scores, hidden] = splitMask(b, unshifted(input, dim));
  ir::Value* seen = hidden ? hide(b, scores, hidden) : scores;
  ir::Value* shifted = sub(b, seen, aten::Amax::create(b, seen, dims, true));
  ir::Value* exponential = aten::Exp::create(b, shifted);
  if (hidden) exponential = aten::WhereSelf::create(b, hidden, number(b, 0, 0), exponential);
  ir::Value* sum = aten::SumDimIntList::create(b, exponential, dims, true);
  // The largest score contributes 1; only rows in which all are hidden have a smaller sum.
  if (hidden) sum = aten::ClampMin::create(b, sum, 1.0);
  return mul(b, exponential, aten::Reciprocal::create(b, sum));
}

void addNormRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteWrittenSoftmax, rewriteSoftmax<aten::SoftmaxInt>,
              rewriteSoftmax<aten::PrivateSoftmax>, rewriteSoftmax<aten::PrivateSafeSoftmax>,
              rewriteLogSoftmax<aten::LogSoftmaxInt>, rewriteLogSoftmax<aten::PrivateLogSoftmax>,
              rewriteLayerNorm<aten::LayerNorm>, rewriteLayerNorm<aten::NativeLayerNorm>, rewriteRmsNorm,
              rewriteGroupNorm<aten::GroupNorm>, rewriteGroupNorm<aten::NativeGroupNorm>, rewriteInstanceNorm,
              rewriteBatchStatistics, rewriteComputedBatchNorm, rewriteVariance);
  addWrittenNormRewrites(rewrites);
}

}  // namespace carina::decompose
