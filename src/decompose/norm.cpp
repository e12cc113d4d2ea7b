// SPDX-License-Identifier: Apache-2.0
// Softmax as reductions and pointwise operators, each of which gets a range of its own when the network is
// quantized. Normalisations become one of rows without weights (layer_norm or rms_norm) and pointwise
// operators.
#include <algorithm>
#include <limits>

#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"
#include "decompose/softmax_mask.hpp"

namespace carina::decompose {
namespace {

ir::Value* meanOver(ir::Builder& b, ir::Value* x, ir::Ints dims) {
  return aten::MeanDim::create(b, x, std::move(dims), true, std::nullopt).output();
}
ir::Value* sub(ir::Builder& b, ir::Value* x, ir::Value* y) {
  return aten::SubTensor::create(b, x, y, int64_t{1}).output();
}
ir::Value* add(ir::Builder& b, ir::Value* x, ir::Value* y) {
  return aten::AddTensor::create(b, x, y, int64_t{1}).output();
}
ir::Value* mul(ir::Builder& b, ir::Value* x, ir::Value* y) {
  return aten::MulTensor::create(b, x, y).output();
}

/// (x - mean) / sqrt(var + eps) over the last `count` dimensions, biased variance. It stays whole: no 8 or
/// 16-bit codes hold the variances of rows that differ by orders of magnitude.
ir::Value* normalized(ir::Builder& b, ir::Value* x, size_t count, double eps) {
  const Shape& shape = x->shape();
  return aten::LayerNorm::create(b, x, nullptr, nullptr,
                                 ir::Ints(shape.end() - static_cast<std::ptrdiff_t>(count), shape.end()), eps,
                                 false)
      .output();
}

ir::Ints lastDims(int64_t rank, size_t count) {
  ir::Ints dims;
  for (int64_t d = rank - static_cast<int64_t>(count); d < rank; ++d) dims.push_back(d);
  return dims;
}

/// weight [C] as [1, C, 1, ...] for a tensor of this rank.
ir::Value* perChannel(ir::Builder& b, ir::Value* weight, int64_t rank) {
  ir::Ints shape(static_cast<size_t>(rank), 1);
  shape[1] = weight->numElements();
  return aten::View::create(b, weight, shape).output();
}

ir::Value* scaledAndShifted(ir::Builder& b, ir::Value* x, ir::Value* weight, ir::Value* bias) {
  if (weight) x = mul(b, x, weight);
  if (bias) x = add(b, x, bias);
  return x;
}

template <typename Op>
Result<bool> rewriteSoftmax(ir::Node* node) {
  const Op op = ir::dynCast<Op>(node);
  if (!op || isQuantizedWhole(*node) || op.self()->dtype() != DType::Float32) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  replaceNode(node, softmaxOf(b, op.self(), op.dim()));
  return true;
}

/// x - max - log(sum(exp(x - max)))
template <typename Op>
Result<bool> rewriteLogSoftmax(ir::Node* node) {
  const Op op = ir::dynCast<Op>(node);
  if (!op || isQuantizedWhole(*node) || op.self()->dtype() != DType::Float32) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  const ir::Ints dims{op.dim()};
  ir::Value* shifted = sub(b, op.self(), aten::Amax::create(b, op.self(), dims, true).output());
  ir::Value* sum =
      aten::SumDimIntList::create(b, aten::Exp::create(b, shifted).output(), dims, true, std::nullopt)
          .output();
  replaceNode(node, sub(b, shifted, aten::Log::create(b, sum).output()));
  return true;
}

template <typename Op>
Result<bool> rewriteLayerNorm(ir::Node* node) {
  const Op op = ir::dynCast<Op>(node);
  if (!op || (std::is_same_v<Op, aten::LayerNorm> && !op.weight() && !op.bias())) return false;
  for (size_t i = 1; i < node->results().size(); ++i) {
    if (!node->result(i)->unused()) return false;
  }
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* result = normalized(b, op.input(), op.normalizedShape().size(), op.eps());
  replaceNode(node, scaledAndShifted(b, result, op.weight(), op.bias()));
  return true;
}

Result<bool> rewriteRmsNorm(ir::Node* node) {
  const aten::RmsNorm op = ir::dynCast<aten::RmsNorm>(node);
  if (!op || !op.weight()) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* result = aten::RmsNorm::create(b, op.input(), nullptr, op.normalizedShape(), op.eps()).output();
  replaceNode(node, mul(b, result, op.weight()));
  return true;
}

/// Groups of channels as one dimension: [N, groups, everything else].
ir::Value* groupNormOf(ir::Builder& b, ir::Value* x, int64_t groups, ir::Value* weight, ir::Value* bias,
                       double eps) {
  const Shape shape = x->shape();
  const int64_t inside = x->numElements() / (shape[0] * groups);
  ir::Value* grouped = aten::View::create(b, x, ir::Ints{shape[0], groups, inside}).output();
  ir::Value* result = aten::View::create(b, normalized(b, grouped, 1, eps), shape).output();
  const int64_t rank = x->rank();
  return scaledAndShifted(b, result, weight ? perChannel(b, weight, rank) : nullptr,
                          bias ? perChannel(b, bias, rank) : nullptr);
}

template <typename Op>
Result<bool> rewriteGroupNorm(ir::Node* node) {
  const Op op = ir::dynCast<Op>(node);
  if (!op || isQuantizedWhole(*node)) return false;
  for (size_t i = 1; i < node->results().size(); ++i) {
    if (!node->result(i)->unused()) return false;
  }
  int64_t groups = 0;
  if constexpr (std::is_same_v<Op, aten::GroupNorm>)
    groups = op.numGroups();
  else
    groups = op.group();
  ir::Builder b = ir::Builder::beforeNode(node);
  replaceNode(node, groupNormOf(b, op.input(), groups, op.weight(), op.bias(), op.eps()));
  return true;
}

Result<bool> rewriteInstanceNorm(ir::Node* node) {
  const aten::InstanceNorm op = ir::dynCast<aten::InstanceNorm>(node);
  if (!op || !op.useInputStats() || isQuantizedWhole(*node)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  replaceNode(node, groupNormOf(b, op.input(), op.input()->dim(1), op.weight(), op.bias(), op.eps()));
  return true;
}

/// Batch norm by the statistics of the batch itself: over everything but the channels, which go to the front.
Result<bool> rewriteBatchStatistics(ir::Node* node) {
  const aten::BatchNorm op = ir::dynCast<aten::BatchNorm>(node);
  if (!op || (!op.training() && op.runningMean()) || isQuantizedWhole(*node)) return false;
  ir::Value* x = op.input();
  ir::Ints swapped;
  for (int64_t d = 0; d < x->rank(); ++d) swapped.push_back(d < 2 ? 1 - d : d);
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* rows = aten::Permute::create(b, x, swapped).output();
  rows = normalized(b, rows, static_cast<size_t>(x->rank()) - 1, op.eps());
  replaceNode(node, scaledAndShifted(b, aten::Permute::create(b, rows, swapped).output(),
                                     op.weight() ? perChannel(b, op.weight(), x->rank()) : nullptr,
                                     op.bias() ? perChannel(b, op.bias(), x->rank()) : nullptr));
  return true;
}

/// What is subtracted from its own mean over `dims`: x of x - mean(x).
ir::Value* centredOf(ir::Value* value, const ir::Ints& dims) {
  const auto difference = ir::producerAs<aten::SubTensor>(value);
  if (!difference || ir::scalarReal(difference.alpha()) != 1) return nullptr;
  const auto mean = ir::producerAs<aten::MeanDim>(difference.other());
  if (!mean || !mean.keepdim() || mean.self() != difference.self() || mean.dim() != dims) return nullptr;
  return difference.self();
}

/// What the value is the square of.
ir::Value* squaredOf(ir::Value* value) {
  if (const auto product = ir::producerAs<aten::MulTensor>(value))
    return product.self() == product.other() ? product.self() : nullptr;
  if (const auto square = ir::producerAs<aten::Square>(value)) return square.self();
  const auto power = ir::producerAs<aten::PowTensorScalar>(value);
  return power && ir::scalarReal(power.exponent()) == 2 ? power.self() : nullptr;
}

/// What the value is one over the root of.
ir::Value* inverseRootOf(ir::Value* value) {
  if (const auto rsqrt = ir::producerAs<aten::Rsqrt>(value)) return rsqrt.self();
  if (const auto power = ir::producerAs<aten::PowTensorScalar>(value))
    return ir::scalarReal(power.exponent()) == -0.5 ? power.self() : nullptr;
  const auto reciprocal = ir::producerAs<aten::Reciprocal>(value);
  if (!reciprocal) return nullptr;
  if (const auto root = ir::producerAs<aten::Sqrt>(reciprocal.self())) return root.self();
  return nullptr;
}

/// Whether these are the last dimensions of a tensor, in ascending order.
bool areLast(const ir::Ints& dims, int64_t rank) {
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = dims[i] < 0 ? dims[i] + rank : dims[i];
    if (d != rank - static_cast<int64_t>(dims.size() - i)) return false;
  }
  return !dims.empty();
}

/// x * rsqrt(mean(x * x) + eps) in the network's own words, x maybe less its mean: a norm like those that
/// PyTorch has operators for.
Result<bool> rewriteSpelledNorm(ir::Node* node) {
  const aten::MulTensor op = ir::dynCast<aten::MulTensor>(node);
  if (!op || op.output()->dtype() != DType::Float32) return false;
  for (const auto& [x, factor] : {std::pair(op.self(), op.other()), std::pair(op.other(), op.self())}) {
    ir::Value* sum = inverseRootOf(factor);
    if (!sum) continue;
    const auto shifted = ir::producerAs<aten::AddScalar>(sum);
    if (!shifted || ir::scalarReal(shifted.alpha()) != 1 || !(ir::scalarReal(shifted.other()) > 0)) continue;
    const auto mean = ir::producerAs<aten::MeanDim>(shifted.self());
    if (!mean || !mean.keepdim()) continue;
    const ir::Ints dims = mean.dim().value_or(ir::Ints());
    const ir::Value* squared = squaredOf(mean.self());
    if (!areLast(dims, x->rank()) || !squared || squared->shape() != x->shape()) continue;
    ir::Value* source = centredOf(x, dims);
    ir::Builder b = ir::Builder::beforeNode(node);
    const double eps = ir::scalarReal(shifted.other());
    if (source && (squared == x || centredOf(mean.self()->producer()->operands()[0], dims) == source)) {
      replaceNode(node, normalized(b, source, dims.size(), eps));
      return true;
    }
    if (squared != x) continue;
    const Shape& shape = x->shape();
    ir::Ints last(shape.end() - static_cast<std::ptrdiff_t>(dims.size()), shape.end());
    replaceNode(node, aten::RmsNorm::create(b, x, nullptr, std::move(last), eps).output());
    return true;
  }
  return false;
}

/// Batch norm in evaluation whose parameters are computed: folding needs constants.
Result<bool> rewriteComputedBatchNorm(ir::Node* node) {
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
  if (!mean || !variance || isQuantizedWhole(*node)) return false;
  if (known(mean) && known(variance) && known(weight) && known(bias)) return false;
  for (size_t i = 1; i < node->results().size(); ++i) {
    if (!node->result(i)->unused()) return false;
  }
  ir::Value* x = node->operands()[0];
  ir::Builder b = ir::Builder::beforeNode(node);
  const auto wide = [&](ir::Value* v) { return v ? perChannel(b, v, x->rank()) : nullptr; };
  ir::Value* shifted = aten::AddScalar::create(b, variance, eps, int64_t{1}).output();
  ir::Value* factor = aten::Rsqrt::create(b, shifted).output();
  ir::Value* result = mul(b, sub(b, x, wide(mean)), wide(factor));
  replaceNode(node, scaledAndShifted(b, result, wide(weight), wide(bias)));
  return true;
}

/// Sum of squared differences from the mean over max(0, N - correction).
Result<bool> replaceByVariance(ir::Node* node, ir::Value* x, const std::optional<ir::Ints>& dims,
                               double correction, bool keepdim, bool root) {
  if (isQuantizedWhole(*node) || x->dtype() != DType::Float32) return false;
  ir::Ints over;
  int64_t count = 1;
  if (dims && !dims->empty())
    over = *dims;
  else
    over = lastDims(x->rank(), static_cast<size_t>(x->rank()));
  for (int64_t d : over) count *= x->dim(d < 0 ? d + x->rank() : d);
  if (static_cast<double>(count) <= correction) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* centred = sub(b, x, meanOver(b, x, over));
  ir::Value* square = mul(b, centred, centred);
  ir::Value* mean = aten::MeanDim::create(b, square, over, keepdim, std::nullopt).output();
  const double factor = static_cast<double>(count) / (static_cast<double>(count) - correction);
  ir::Value* result = factor == 1 ? mean : aten::MulScalar::create(b, mean, factor).output();
  if (root) result = aten::Sqrt::create(b, result).output();
  replaceNode(node, result);
  return true;
}

Result<bool> rewriteVariance(ir::Node* node) {
  const auto correctionOf = [](const ir::Attribute& value) {
    return std::holds_alternative<std::monostate>(value) ? 1.0 : ir::scalarReal(value);
  };
  if (const auto op = ir::dynCast<aten::VarCorrection>(node)) {
    return replaceByVariance(node, op.self(), op.dim(), correctionOf(op.correction()), op.keepdim(), false);
  }
  if (const auto op = ir::dynCast<aten::StdCorrection>(node)) {
    return replaceByVariance(node, op.self(), op.dim(), correctionOf(op.correction()), op.keepdim(), true);
  }
  if (const auto op = ir::dynCast<aten::VarDim>(node)) {
    return replaceByVariance(node, op.self(), op.dim(), op.unbiased() ? 1 : 0, op.keepdim(), false);
  }
  if (const auto op = ir::dynCast<aten::StdDim>(node)) {
    return replaceByVariance(node, op.self(), op.dim(), op.unbiased() ? 1 : 0, op.keepdim(), true);
  }
  if (const auto op = ir::dynCast<aten::Var>(node)) {
    return replaceByVariance(node, op.self(), std::nullopt, op.unbiased() ? 1 : 0, false, false);
  }
  if (const auto op = ir::dynCast<aten::Std>(node)) {
    return replaceByVariance(node, op.self(), std::nullopt, op.unbiased() ? 1 : 0, false, true);
  }
  return false;
}

}  // namespace

ir::Value* softmaxOf(ir::Builder& b, ir::Value* input, int64_t dim) {
  const ir::Ints dims{dim};
  const auto [scores, hidden] = splitMask(b, input);
  ir::Value* seen = hidden ? hide(b, scores, hidden) : scores;
  ir::Value* shifted = sub(b, seen, aten::Amax::create(b, seen, dims, true).output());
  ir::Value* exponential = aten::Exp::create(b, shifted).output();
  if (hidden) exponential = aten::WhereSelf::create(b, hidden, number(b, 0, 0), exponential).output();
  ir::Value* sum = aten::SumDimIntList::create(b, exponential, dims, true, std::nullopt).output();
  // The largest score adds 1; only rows in which all are hidden have less.
  if (hidden) sum = aten::ClampMin::create(b, sum, 1.0).output();
  return mul(b, exponential, aten::Reciprocal::create(b, sum).output());
}

void addNormRewrites(std::vector<ir::Rewrite>& rewrites) {
  rewrites.insert(rewrites.end(),
                  {rewriteSoftmax<aten::SoftmaxInt>, rewriteSoftmax<aten::PrivateSoftmax>,
                   rewriteSoftmax<aten::PrivateSafeSoftmax>, rewriteLogSoftmax<aten::LogSoftmaxInt>,
                   rewriteLogSoftmax<aten::PrivateLogSoftmax>, rewriteLayerNorm<aten::LayerNorm>,
                   rewriteLayerNorm<aten::NativeLayerNorm>, rewriteRmsNorm, rewriteGroupNorm<aten::GroupNorm>,
                   rewriteGroupNorm<aten::NativeGroupNorm>, rewriteInstanceNorm, rewriteBatchStatistics,
                   rewriteComputedBatchNorm, rewriteVariance, rewriteSpelledNorm});
}

}  // namespace carina::decompose
