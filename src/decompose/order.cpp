// SPDX-License-Identifier: Apache-2.0
// Order statistics: medians are the last of the k smallest elements, and the first few elements of an order
// are repeated extremes. For more, the CPU sorts lines.
#include <algorithm>

#include "aten/ops.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

/// Each extreme takes six or seven operations: more of them cost more than to leave the NPU and sort.
constexpr int64_t kMostExtremes = 8;

/// Elements and their indices.
struct Ordered {
  std::vector<ir::Value*> values, indices;
};

/// The first `count` elements along a dimension, of size 1 there, if they are sorted stably. Each is the
/// extreme of those that are left; those already taken count as the opposite extreme.
Ordered extremes(ir::Builder& b, ir::Value* x, int64_t dim, int64_t count, bool largest) {
  const ir::Ints dims{dim};
  const auto extreme = [&](ir::Value* of, bool most) -> ir::Value* {
    if (most) return aten::Amax::create(b, of, dims, true);
    return aten::Amin::create(b, of, dims, true);
  };
  Ordered result;
  ir::Value* taken = nullptr;
  ir::Value* const opposite = count > 1 ? extreme(x, !largest) : nullptr;
  ir::Value* const places = placesAlong(b, x, dim);
  for (int64_t i = 0; i < count; ++i) {
    ir::Value* left = taken ? aten::WhereSelf::create(b, taken, opposite, x).output() : x;
    ir::Value* value = extreme(left, largest);
    ir::Value* here = aten::EqTensor::create(b, x, value);
    if (taken) here = aten::LogicalAnd::create(b, here, aten::LogicalNot::create(b, taken));
    ir::Value* index = aten::Argmax::create(b, aten::PrivateToCopy::create(b, here, DType::Int8), dim, true);
    result.values.push_back(value);
    result.indices.push_back(index);
    if (i + 1 == count) break;
    ir::Value* chosen = aten::EqTensor::create(b, places, index);
    taken = taken ? aten::LogicalOr::create(b, taken, chosen).output() : chosen;
  }
  return result;
}

bool isSortable(const ir::Value* x) {
  return x->dtype() == DType::Float32 && x->rank() > 0 && x->numElements() > 0;
}

/// Whether a value is only moved on its way to the network's outputs. Where an order ends the network, the
/// CPU finds it in the floats that it computes from the outputs' codes anyway.
bool isOnlyReturned(const ir::Value* value) {
  std::vector<const ir::Value*> pending{value};
  while (!pending.empty()) {
    value = pending.back();
    pending.pop_back();
    for (const ir::Use& use : value->uses()) {
      if (!use.node->def().has(ir::kView) || use.node->results().size() != 1) return false;
      pending.push_back(use.node->result());
    }
  }
  return true;
}

/// Replaces values and indices of the `count` first elements.
bool replaceByExtremes(ir::Node* node, int64_t dim, int64_t count, bool largest) {
  ir::Value* x = node->operands()[0];
  if (!isSortable(x) || count < 1 || count > kMostExtremes) return false;
  if (isOnlyReturned(node->result(0)) && isOnlyReturned(node->result(1))) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  dim = wrapped(dim, x->rank());
  const Ordered found = extremes(b, x, dim, count, largest);
  const auto joined = [&](const std::vector<ir::Value*>& parts) {
    return parts.size() == 1 ? parts[0] : aten::Cat::create(b, parts, dim).output();
  };
  if (!node->result(1)->unused()) node->graph().replaceAllUses(node->result(1), joined(found.indices));
  replaceNode(node, joined(found.values));
  return true;
}

Result<bool> rewriteTopk(ir::Node* node) {
  const auto op = ir::dynCast<aten::Topk>(node);
  return op && replaceByExtremes(node, op.dim(), op.k(), op.largest());
}

template <typename Op>
Result<bool> rewriteShortSort(ir::Node* node) {
  const auto op = ir::dynCast<Op>(node);
  if (!op || op.self()->rank() == 0) return false;
  return replaceByExtremes(node, op.dim(), op.self()->dim(wrapped(op.dim(), op.self()->rank())),
                           op.descending());
}

/// argsort is the second result of a sort.
template <typename Op>
ir::Value* rewriteShortArgsort(ir::Builder& b, Op op) {
  if (!isSortable(op.self()) || isOnlyReturned(op->result())) return nullptr;
  const int64_t dim = wrapped(op.dim(), op.self()->rank()), size = op.self()->dim(dim);
  if (size > kMostExtremes) return nullptr;
  return aten::Cat::create(b, extremes(b, op.self(), dim, size, op.descending()).indices, dim);
}

/// median, kthvalue: the last of the smallest elements.
ir::Value* rewriteOrderStatistic(ir::Builder& b, ir::Node* node) {
  const auto along = ir::dynCast<aten::MedianDim>(node);
  const auto kth = ir::dynCast<aten::Kthvalue>(node);
  const bool all = ir::isa<aten::Median>(node);
  if ((!along && !kth && !all) || isQuantizedAsUnit(*node)) return nullptr;
  ir::Value* x = node->operands()[0];
  if (all) x = aten::Reshape::create(b, x, ir::Ints{x->numElements()});
  if (x->rank() == 0 || x->numElements() == 0) return nullptr;
  const int64_t dim = along ? wrapped(along.dim(), x->rank()) : kth ? wrapped(kth.dim(), x->rank()) : 0;
  const int64_t count = kth ? kth.k() : (x->dim(dim) - 1) / 2 + 1;
  const auto smallest = aten::Topk::create(b, x, count, dim, false);
  const auto last = [&](ir::Value* of) {
    return viewed(b, aten::SliceTensor::create(b, of, dim, count - 1, count), node->result()->shape());
  };
  if (!all && !node->result(1)->unused())
    node->graph().replaceAllUses(node->result(1), last(smallest.output1()));
  return last(smallest.output0());
}

}  // namespace

ir::Value* placesAlong(ir::Builder& b, const ir::Value* x, int64_t dim) {
  Shape along(x->shape().size(), 1);
  along[static_cast<size_t>(dim)] = x->dim(dim);
  return b.constant(Tensor::from(along, numbersBelow(x->dim(dim))));
}

void addOrderRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteOrderStatistic);
}

void addExtremeRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteTopk, rewriteShortSort<aten::Sort>, rewriteShortSort<aten::SortStable>,
              rewriteShortArgsort<aten::Argsort>, rewriteShortArgsort<aten::ArgsortStable>);
}

}  // namespace carina::decompose
