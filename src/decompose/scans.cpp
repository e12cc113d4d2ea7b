// SPDX-License-Identifier: Apache-2.0
// Results along a dimension that need more than one reduction: running products and extremes, element
// counts, distances between rows.
#include <algorithm>

#include "aten/ops.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

ir::Value* subrange(ir::Builder& b, ir::Value* x, int64_t dim, int64_t from, int64_t to) {
  return aten::SliceTensor::create(b, x, dim, from, to);
}

/// Combines every element with all that precede it: with its neighbour, then with the one two positions
/// before, then four, and so on.
template <typename Join>
ir::Value* scanned(ir::Builder& b, ir::Value* x, int64_t dim, Join join) {
  const int64_t size = x->dim(dim);
  for (int64_t step = 1; step < size; step *= 2) {
    ir::Value* joined = join(subrange(b, x, dim, 0, size - step), subrange(b, x, dim, step, size));
    x = aten::Cat::create(b, {subrange(b, x, dim, 0, step), joined}, dim);
  }
  return x;
}

/// Running sums of integers, which the matrix products used for floats would round.
ir::Value* rewriteRunningCount(ir::Builder& b, aten::Cumsum op) {
  if (!isInteger(op->result()->dtype()) || op.self()->rank() == 0 || op.self()->numElements() == 0)
    return nullptr;
  ir::Value* x = op.self();
  if (x->dtype() != op->result()->dtype()) x = aten::PrivateToCopy::create(b, x, op->result()->dtype());
  return scanned(b, x, wrapped(op.dim(), x->rank()), [&](ir::Value* before, ir::Value* here) {
    return aten::AddTensor::create(b, before, here);
  });
}

/// cumprod, logcumsumexp
ir::Value* rewriteRunning(ir::Builder& b, ir::Node* node) {
  const auto product = ir::dynCast<aten::Cumprod>(node);
  const auto logSum = ir::dynCast<aten::Logcumsumexp>(node);
  if ((!product && !logSum) || isQuantizedAsUnit(*node)) return nullptr;
  ir::Value* x = node->operands()[0];
  if (x->rank() == 0 || x->numElements() == 0 || x->type != node->result()->type) return nullptr;
  if (logSum && x->dtype() != DType::Float32) return nullptr;
  const int64_t dim = wrapped(product ? product.dim() : logSum.dim(), x->rank());
  return scanned(b, x, dim, [&](ir::Value* before, ir::Value* here) {
    return product ? aten::MulTensor::create(b, before, here) : aten::Logaddexp::create(b, before, here);
  });
}

/// Running extremes; their indices are those of the last elements that equal them.
template <typename Op, typename Extreme>
ir::Value* rewriteRunningExtreme(ir::Builder& b, Op op) {
  if (op.self()->rank() == 0 || op.self()->numElements() == 0 || isQuantizedAsUnit(op)) return nullptr;
  ir::Value* x = op.self();
  const int64_t dim = wrapped(op.dim(), x->rank());
  ir::Value* values = scanned(
      b, x, dim, [&](ir::Value* before, ir::Value* here) { return Extreme::create(b, before, here); });
  if (!op->result(1)->unused()) {
    ir::Value* places = placesAlong(b, x, dim);
    ir::Value* here = aten::EqTensor::create(b, x, values);
    ir::Value* none = b.constant(Tensor::zeros(DType::Int64, {}));
    ir::Value* indices = aten::WhereSelf::create(b, here, places, none);
    indices = scanned(b, indices, dim,
                      [&](ir::Value* before, ir::Value* at) { return aten::Maximum::create(b, before, at); });
    std::swap(indices->name, op->result(1)->name);
    op->graph().replaceAllUses(op->result(1), indices);
  }
  return values;
}

/// argmax, argmin of wide integers: the first position at which they equal the extreme.
template <typename Op>
ir::Value* rewriteIntegerArgument(ir::Builder& b, Op op) {
  constexpr bool kLargest = std::is_same_v<Op, aten::Argmax>;
  if (isQuantizedAsUnit(op)) return nullptr;
  ir::Value* x = op.self();
  if ((x->dtype() != DType::Int32 && x->dtype() != DType::Int64) || x->numElements() == 0) return nullptr;
  if (!op.dim() || x->rank() == 0) x = aten::Reshape::create(b, x, ir::Ints{x->numElements()});
  const int64_t dim = op.dim() && op.self()->rank() > 0 ? wrapped(*op.dim(), x->rank()) : 0;
  const ir::Ints dims{dim};
  ir::Value* extreme = kLargest ? aten::Amax::create(b, x, dims, true) : aten::Amin::create(b, x, dims, true);
  ir::Value* here = aten::EqTensor::create(b, x, extreme);
  ir::Value* behind = b.constant(Tensor::from(Shape{}, std::vector<int64_t>{x->dim(dim)}));
  ir::Value* places = aten::WhereSelf::create(b, here, placesAlong(b, x, dim), behind);
  ir::Value* first = aten::Amin::create(b, places, dims);
  return aten::View::create(b, first, op->result()->shape());
}

/// Smallest and largest together.
ir::Value* rewriteBothExtremes(ir::Builder& b, aten::Aminmax op) {
  if (op.self()->rank() == 0 || isQuantizedAsUnit(op)) return nullptr;
  const ir::Ints dims = op.dim() ? ir::Ints{*op.dim()} : numbersBelow(op.self()->rank());
  ir::Value* largest = aten::Amax::create(b, op.self(), dims, op.keepdim());
  if (largest->type != op->result(1)->type) return nullptr;
  op->graph().replaceAllUses(op->result(1), largest);
  return aten::Amin::create(b, op.self(), dims, op.keepdim());
}

/// The number of nonzero elements: the sum of ones in their positions.
ir::Value* rewriteCount(ir::Builder& b, ir::Node* node) {
  const auto along = ir::dynCast<aten::CountNonzeroDimIntList>(node);
  const auto all = ir::dynCast<aten::CountNonzero>(node);
  if ((!along && !all) || isQuantizedAsUnit(*node)) return nullptr;
  ir::Value* x = node->operands()[0];
  if (x->dtype() != DType::Bool) x = aten::NeTensor::create(b, x, b.constant(Tensor::zeros(x->dtype(), {})));
  x = aten::PrivateToCopy::create(b, x, DType::Int64);
  ir::Ints dims;
  if (along)
    dims = along.dim();
  else if (all.dim())
    dims = {*all.dim()};
  if (dims.empty()) dims = numbersBelow(x->rank());
  return aten::SumDimIntList::create(b, x, dims);
}

ir::Value* rewriteTrace(ir::Builder& b, aten::Trace op) {
  if (isQuantizedAsUnit(op)) return nullptr;
  ir::Value* diagonal = aten::Diagonal::create(b, op.self());
  return aten::SumDimIntList::create(b, diagonal, ir::Ints{0});
}

/// The norm of order p over the last dimension.
ir::Value* lengthOf(ir::Builder& b, ir::Value* x, double p, bool keepdim) {
  return aten::LinalgVectorNorm::create(b, x, p, ir::Ints{-1}, keepdim);
}

/// cdist: every row of x1 against every row of x2.
template <typename Op>
ir::Value* rewriteDistances(ir::Builder& b, Op op) {
  if (isQuantizedAsUnit(op) || op.x1()->rank() < 2 || op.x2()->rank() < 2) return nullptr;
  if (op.x1()->dtype() != DType::Float32 || op.x2()->dtype() != DType::Float32) return nullptr;
  ir::Value* rows = aten::Unsqueeze::create(b, op.x1(), int64_t{-2});
  ir::Value* columns = aten::Unsqueeze::create(b, op.x2(), int64_t{-3});
  ir::Value* apart = aten::SubTensor::create(b, rows, columns);
  return lengthOf(b, apart, op.p(), false);
}

/// pdist: every row against those that follow it.
template <typename Op>
ir::Value* rewritePairs(ir::Builder& b, Op op) {
  if (isQuantizedAsUnit(op) || op.self()->rank() != 2 || op.self()->dtype() != DType::Float32) return nullptr;
  std::vector<int64_t> first, second;
  const int64_t rows = op.self()->dim(0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i + 1; j < rows; ++j) first.push_back(i), second.push_back(j);
  }
  if (first.empty()) return nullptr;
  const auto picked = [&](const std::vector<int64_t>& which) {
    ir::Value* index = b.constant(Tensor::from({static_cast<int64_t>(which.size())}, which));
    return aten::IndexSelect::create(b, op.self(), index, int64_t{0});
  };
  ir::Value* apart = aten::SubTensor::create(b, picked(first), picked(second));
  return lengthOf(b, apart, op.p(), false);
}

ir::Value* rewritePairwiseDistance(ir::Builder& b, aten::PairwiseDistance op) {
  if (isQuantizedAsUnit(op) || op.x1()->dtype() != DType::Float32 || op.x2()->dtype() != DType::Float32)
    return nullptr;
  ir::Value* apart = aten::SubTensor::create(b, op.x1(), op.x2());
  apart = aten::AddScalar::create(b, apart, op.eps());
  return lengthOf(b, apart, op.p(), op.keepdim());
}

}  // namespace

void addScanRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteRunningCount, rewriteRunning,
              rewriteRunningExtreme<aten::Cummax, aten::Maximum>,
              rewriteRunningExtreme<aten::Cummin, aten::Minimum>, rewriteIntegerArgument<aten::Argmax>,
              rewriteIntegerArgument<aten::Argmin>, rewriteBothExtremes, rewriteCount, rewriteTrace,
              rewriteDistances<aten::Cdist>, rewriteDistances<aten::PrivateCdistForward>,
              rewritePairs<aten::Pdist>, rewritePairs<aten::PrivatePdistForward>, rewritePairwiseDistance);
}

}  // namespace carina::decompose
