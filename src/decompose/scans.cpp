// SPDX-License-Identifier: Apache-2.0
// Results along a dimension that need more than one reduction: running products and extremes, order
// statistics, numbers of elements, distances between rows.
#include <algorithm>
#include <numeric>

#include "aten/ops.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

ir::Value* slice(ir::Builder& b, ir::Value* x, int64_t dim, int64_t from, int64_t to) {
  return aten::SliceTensor::create(b, x, dim, from, to, int64_t{1}).output();
}

/// Every element joined with all in front of it: with its neighbour, then with the one two places in front,
/// then four, and so on.
template <typename Join>
ir::Value* scanned(ir::Builder& b, ir::Value* x, int64_t dim, Join join) {
  const int64_t size = x->dim(dim);
  for (int64_t step = 1; step < size; step *= 2) {
    ir::Value* joined = join(slice(b, x, dim, 0, size - step), slice(b, x, dim, step, size));
    x = aten::Cat::create(b, {slice(b, x, dim, 0, step), joined}, dim).output();
  }
  return x;
}

/// Running sums of integers, which the products of matrices that serve real ones would round.
Result<bool> rewriteRunningCount(ir::Node* node) {
  const auto op = ir::dynCast<aten::Cumsum>(node);
  if (!op || !isInteger(node->result()->dtype()) || op.self()->rank() == 0 || op.self()->numElements() == 0)
    return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* x = op.self();
  if (x->dtype() != node->result()->dtype())
    x = aten::PrivateToCopy::create(b, x, node->result()->dtype(), {}, {}, {}, false, {}).output();
  replaceNode(node, scanned(b, x, wrapped(op.dim(), x->rank()), [&](ir::Value* before, ir::Value* here) {
                return aten::AddTensor::create(b, before, here, int64_t{1}).output();
              }));
  return true;
}

/// cumprod, logcumsumexp
Result<bool> rewriteRunning(ir::Node* node) {
  const auto product = ir::dynCast<aten::Cumprod>(node);
  const auto logSum = ir::dynCast<aten::Logcumsumexp>(node);
  if ((!product && !logSum) || isQuantizedWhole(*node)) return false;
  ir::Value* x = node->operands()[0];
  if (x->rank() == 0 || x->numElements() == 0 || x->type != node->result()->type) return false;
  if (logSum && x->dtype() != DType::Float32) return false;
  const int64_t dim = wrapped(product ? product.dim() : logSum.dim(), x->rank());
  ir::Builder b = ir::Builder::beforeNode(node);
  replaceNode(node, scanned(b, x, dim, [&](ir::Value* before, ir::Value* here) {
                return product ? aten::MulTensor::create(b, before, here).output()
                               : aten::Logaddexp::create(b, before, here).output();
              }));
  return true;
}

/// Running extremes; their indices are those of the last elements that equal them.
template <typename Op, typename Extreme>
Result<bool> rewriteRunningExtreme(ir::Node* node) {
  const auto op = ir::dynCast<Op>(node);
  if (!op || op.self()->rank() == 0 || op.self()->numElements() == 0 || isQuantizedWhole(*node)) return false;
  ir::Value* x = op.self();
  const int64_t dim = wrapped(op.dim(), x->rank());
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* values = scanned(b, x, dim, [&](ir::Value* before, ir::Value* here) {
    return Extreme::create(b, before, here).output();
  });
  if (!node->result(1)->unused()) {
    std::vector<int64_t> numbers(static_cast<size_t>(x->dim(dim)));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    Shape along(x->shape().size(), 1);
    along[static_cast<size_t>(dim)] = x->dim(dim);
    ir::Value* places = b.constant(Tensor::from(along, numbers));
    ir::Value* here = aten::EqTensor::create(b, x, values).output();
    ir::Value* none = b.constant(Tensor::zeros(DType::Int64, {}));
    ir::Value* indices = aten::WhereSelf::create(b, here, places, none).output();
    indices = scanned(b, indices, dim, [&](ir::Value* before, ir::Value* at) {
      return aten::Maximum::create(b, before, at).output();
    });
    std::swap(indices->name, node->result(1)->name);
    node->graph().replaceAllUses(node->result(1), indices);
  }
  replaceNode(node, values);
  return true;
}

/// argmax, argmin of wide integers: the first of the places where they equal the extreme.
template <typename Op>
Result<bool> rewriteIntegerArgument(ir::Node* node) {
  constexpr bool kLargest = std::is_same_v<Op, aten::Argmax>;
  const auto op = ir::dynCast<Op>(node);
  if (!op || isQuantizedWhole(*node)) return false;
  ir::Value* x = op.self();
  if ((x->dtype() != DType::Int32 && x->dtype() != DType::Int64) || x->numElements() == 0) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  if (!op.dim() || x->rank() == 0) x = aten::Reshape::create(b, x, ir::Ints{x->numElements()}).output();
  const int64_t dim = op.dim() && op.self()->rank() > 0 ? wrapped(*op.dim(), x->rank()) : 0;
  std::vector<int64_t> numbers(static_cast<size_t>(x->dim(dim)));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  Shape along(x->shape().size(), 1);
  along[static_cast<size_t>(dim)] = x->dim(dim);
  const ir::Ints dims{dim};
  ir::Value* extreme = kLargest ? aten::Amax::create(b, x, dims, true).output()
                                : aten::Amin::create(b, x, dims, true).output();
  ir::Value* here = aten::EqTensor::create(b, x, extreme).output();
  ir::Value* behind = b.constant(Tensor::from(Shape{}, std::vector<int64_t>{x->dim(dim)}));
  ir::Value* places =
      aten::WhereSelf::create(b, here, b.constant(Tensor::from(along, numbers)), behind).output();
  ir::Value* first = aten::Amin::create(b, places, dims, false).output();
  replaceNode(node, aten::View::create(b, first, node->result()->shape()).output());
  return true;
}

/// The element (and its index) that `place` others come before when a dimension is sorted.
struct Picked {
  ir::Value *value, *index;
};
Picked inOrder(ir::Builder& b, ir::Value* x, int64_t dim, int64_t place, bool keepdim) {
  const auto sorted = aten::Sort::create(b, x, dim, false);
  const auto at = [&](ir::Value* all) {
    return keepdim ? slice(b, all, dim, place, place + 1)
                   : aten::SelectInt::create(b, all, dim, place).output();
  };
  ir::Value* indices = sorted.node()->result(1);
  return {at(sorted.node()->result(0)), at(indices)};
}

/// median, kthvalue
Result<bool> rewriteOrderStatistic(ir::Node* node) {
  const auto along = ir::dynCast<aten::MedianDim>(node);
  const auto kth = ir::dynCast<aten::Kthvalue>(node);
  const bool all = ir::isa<aten::Median>(node);
  if ((!along && !kth && !all) || isQuantizedWhole(*node)) return false;
  ir::Value* x = node->operands()[0];
  ir::Builder b = ir::Builder::beforeNode(node);
  if (all) x = aten::Reshape::create(b, x, ir::Ints{x->numElements()}).output();
  if (x->rank() == 0 || x->numElements() == 0) return false;
  const int64_t dim = along ? wrapped(along.dim(), x->rank()) : kth ? wrapped(kth.dim(), x->rank()) : 0;
  const int64_t place = kth ? kth.k() - 1 : (x->dim(dim) - 1) / 2;
  const Picked picked = inOrder(b, x, dim, place, along ? along.keepdim() : kth ? kth.keepdim() : false);
  if (!all) node->graph().replaceAllUses(node->result(1), picked.index);
  replaceNode(node, picked.value);
  return true;
}

/// Smallest and largest together.
Result<bool> rewriteBothExtremes(ir::Node* node) {
  const auto op = ir::dynCast<aten::Aminmax>(node);
  if (!op || op.self()->rank() == 0 || isQuantizedWhole(*node)) return false;
  ir::Ints dims;
  if (op.dim()) {
    dims = {*op.dim()};
  } else {
    for (int64_t d = 0; d < op.self()->rank(); ++d) dims.push_back(d);
  }
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* largest = aten::Amax::create(b, op.self(), dims, op.keepdim()).output();
  if (largest->type != node->result(1)->type) return false;
  node->graph().replaceAllUses(node->result(1), largest);
  replaceNode(node, aten::Amin::create(b, op.self(), dims, op.keepdim()).output());
  return true;
}

/// How many elements are other than zero: the sum of ones in their place.
Result<bool> rewriteCount(ir::Node* node) {
  const auto along = ir::dynCast<aten::CountNonzeroDimIntList>(node);
  const auto all = ir::dynCast<aten::CountNonzero>(node);
  if ((!along && !all) || isQuantizedWhole(*node)) return false;
  ir::Value* x = node->operands()[0];
  ir::Builder b = ir::Builder::beforeNode(node);
  if (x->dtype() != DType::Bool)
    x = aten::NeTensor::create(b, x, b.constant(Tensor::zeros(x->dtype(), {}))).output();
  x = aten::PrivateToCopy::create(b, x, DType::Int64, {}, {}, {}, false, {}).output();
  ir::Ints dims;
  if (along)
    dims = along.dim();
  else if (all.dim())
    dims = {*all.dim()};
  if (dims.empty()) {
    for (int64_t d = 0; d < x->rank(); ++d) dims.push_back(d);
  }
  replaceNode(node, aten::SumDimIntList::create(b, x, dims, false, std::nullopt).output());
  return true;
}

Result<bool> rewriteTrace(ir::Node* node) {
  const auto op = ir::dynCast<aten::Trace>(node);
  if (!op || isQuantizedWhole(*node)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* diagonal = aten::Diagonal::create(b, op.self(), int64_t{0}, int64_t{0}, int64_t{1}).output();
  replaceNode(node, aten::SumDimIntList::create(b, diagonal, ir::Ints{0}, false, std::nullopt).output());
  return true;
}

/// The length of each last dimension, of order p.
ir::Value* lengthOf(ir::Builder& b, ir::Value* x, double p, bool keepdim) {
  return aten::LinalgVectorNorm::create(b, x, p, ir::Ints{-1}, keepdim, std::nullopt).output();
}

/// cdist: every row of x1 against every row of x2.
template <typename Op>
Result<bool> rewriteDistances(ir::Node* node) {
  const auto op = ir::dynCast<Op>(node);
  if (!op || isQuantizedWhole(*node) || op.x1()->rank() < 2 || op.x2()->rank() < 2) return false;
  if (op.x1()->dtype() != DType::Float32 || op.x2()->dtype() != DType::Float32) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* rows = aten::Unsqueeze::create(b, op.x1(), int64_t{-2}).output();
  ir::Value* columns = aten::Unsqueeze::create(b, op.x2(), int64_t{-3}).output();
  ir::Value* apart = aten::SubTensor::create(b, rows, columns, int64_t{1}).output();
  replaceNode(node, lengthOf(b, apart, op.p(), false));
  return true;
}

/// pdist: every row against those behind it.
template <typename Op>
Result<bool> rewritePairs(ir::Node* node) {
  const auto op = ir::dynCast<Op>(node);
  if (!op || isQuantizedWhole(*node) || op.self()->rank() != 2 || op.self()->dtype() != DType::Float32)
    return false;
  std::vector<int64_t> first, second;
  const int64_t rows = op.self()->dim(0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i + 1; j < rows; ++j) first.push_back(i), second.push_back(j);
  }
  if (first.empty()) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  const auto picked = [&](const std::vector<int64_t>& which) {
    ir::Value* index = b.constant(Tensor::from({static_cast<int64_t>(which.size())}, which));
    return aten::IndexSelect::create(b, op.self(), index, int64_t{0}).output();
  };
  ir::Value* apart = aten::SubTensor::create(b, picked(first), picked(second), int64_t{1}).output();
  replaceNode(node, lengthOf(b, apart, op.p(), false));
  return true;
}

Result<bool> rewritePairwiseDistance(ir::Node* node) {
  const auto op = ir::dynCast<aten::PairwiseDistance>(node);
  if (!op || isQuantizedWhole(*node) || op.x1()->dtype() != DType::Float32 ||
      op.x2()->dtype() != DType::Float32)
    return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* apart = aten::SubTensor::create(b, op.x1(), op.x2(), int64_t{1}).output();
  apart = aten::AddScalar::create(b, apart, op.eps(), int64_t{1}).output();
  replaceNode(node, lengthOf(b, apart, op.p(), op.keepdim()));
  return true;
}

}  // namespace

void addScanRewrites(std::vector<ir::Rewrite>& rewrites) {
  rewrites.insert(
      rewrites.end(),
      {rewriteRunningCount, rewriteRunning, rewriteRunningExtreme<aten::Cummax, aten::Maximum>,
       rewriteRunningExtreme<aten::Cummin, aten::Minimum>, rewriteIntegerArgument<aten::Argmax>,
       rewriteIntegerArgument<aten::Argmin>, rewriteOrderStatistic, rewriteBothExtremes, rewriteCount,
       rewriteTrace, rewriteDistances<aten::Cdist>, rewriteDistances<aten::PrivateCdistForward>,
       rewritePairs<aten::Pdist>, rewritePairs<aten::PrivatePdistForward>, rewritePairwiseDistance});
}

}  // namespace carina::decompose
