// SPDX-License-Identifier: Apache-2.0
// Elements written at the positions in an index tensor: scatter, scatter_add, scatter_reduce, masked_scatter.
#include <algorithm>

#include "aten/geometry.hpp"
#include "aten/ops.hpp"
#include "base/shape.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

/// Larger windows write their maxima to computed indices.
constexpr int64_t kMostPlaces = 16;

/// The pool whose indices select all places of its input exactly once: with windows next to each other.
std::optional<aten::MaxPool2dWithIndices> tilingPool(const ir::Value* indices) {
  const auto pool = ir::producerAs<aten::MaxPool2dWithIndices>(indices);
  if (!pool || indices != pool.node()->result(1) || pool.self()->rank() != 4) return std::nullopt;
  const auto geometry = aten::poolGeometry(*pool.node());
  if (!geometry.ok() || geometry->kernel != geometry->stride || geometry->padding != ir::Ints{0, 0} ||
      geometry->dilation != ir::Ints{1, 1} || geometry->kernel[0] * geometry->kernel[1] > kMostPlaces)
    return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    if (pool.self()->shape()[i + 2] != geometry->output[i + 2] * geometry->kernel[i]) return std::nullopt;
  }
  return pool;
}

/// max_unpool2d after such a pool: each value goes where the pool found its maximum, the first of equal ones;
/// the places of all windows are compared with their maxima.
ir::Value* rewriteUnpool(ir::Builder& b, const aten::ScatterSrc& scatter) {
  const auto pool = tilingPool(unshaped(scatter.index()));
  const ir::Value* self = scatter.self();
  if (!pool || wrapped(scatter.dim(), self->rank()) != self->rank() - 1 || !self->isConstant() ||
      self->numElements() == 0 || scatter.src()->numElements() != scatter.index()->numElements() ||
      scatter.index()->shape().back() * (self->numElements() / self->shape().back()) !=
          scatter.index()->numElements())
    return nullptr;
  for (int64_t i = 0; i < self->numElements(); ++i) {
    if (self->constant().realAt(i) != 0) return nullptr;
  }
  ir::Value *x = pool->self(), *most = pool->node()->result(0);
  const Shape& full = x->shape();
  if (self->numElements() != x->numElements() || self->shape().back() != full[2] * full[3]) return nullptr;
  const ir::Ints kernel{full[2] / most->dim(2), full[3] / most->dim(3)};
  ir::Value* values = aten::Reshape::create(b, scatter.src(), most->shape());
  ir::Value* zero = b.constant(Tensor::zeros(values->dtype(), {}));
  ir::Value* taken = nullptr;
  std::vector<ir::Value*> rows;
  for (int64_t i = 0; i < kernel[0]; ++i) {
    ir::Value* row = aten::SliceTensor::create(b, x, int64_t{2}, i, full[2], kernel[0]);
    std::vector<ir::Value*> places;
    for (int64_t j = 0; j < kernel[1]; ++j) {
      ir::Value* place = aten::SliceTensor::create(b, row, int64_t{3}, j, full[3], kernel[1]);
      ir::Value* found = aten::EqTensor::create(b, place, most);
      ir::Value* first = found;
      if (taken) first = aten::LogicalAnd::create(b, found, aten::LogicalNot::create(b, taken));
      taken = taken ? aten::LogicalOr::create(b, taken, found).output() : found;
      places.push_back(aten::WhereSelf::create(b, first, values, zero));
    }
    ir::Value* stacked = aten::Stack::create(b, places, int64_t{4});
    rows.push_back(aten::Reshape::create(b, stacked, ir::Ints{full[0], full[1], most->dim(2), full[3]}));
  }
  return aten::Reshape::create(b, aten::Stack::create(b, rows, int64_t{3}), self->shape());
}

/// scatter: writes single elements of the flattened tensor, whose indices combine the index value and its
/// position.
ir::Value* rewriteScatter(ir::Builder& b, ir::Node* node) {
  ir::Value* self = nullptr;
  ir::Value* index = nullptr;
  ir::Value* source = nullptr;
  int64_t dim = 0;
  if (const auto from = ir::dynCast<aten::ScatterSrc>(node)) {
    self = from.self(), index = from.index(), source = from.src(), dim = from.dim();
  } else if (const auto with = ir::dynCast<aten::ScatterValue>(node)) {
    self = with.self(), index = with.index(), dim = with.dim();
    source = b.constant(convert(Tensor::scalar(ir::scalarReal(with.value())), self->dtype()));
  } else {
    return nullptr;
  }
  if (isQuantizedAsUnit(*node) || self->rank() == 0 || index->rank() != self->rank() ||
      index->numElements() == 0)
    return nullptr;
  if (const auto from = ir::dynCast<aten::ScatterSrc>(node)) {
    if (ir::Value* unpooled = rewriteUnpool(b, from)) return unpooled;
  }
  dim = wrapped(dim, self->rank());
  const Shape strides = rowMajorStrides(self->shape());
  const Shape& shape = index->shape();
  Tensor places = Tensor::zeros(DType::Int64, shape);
  Shape at(shape.size(), 0);
  for (int64_t i = 0; i < places.numElements(); ++i) {
    int64_t element = 0;
    for (size_t d = 0; d < at.size(); ++d) element += static_cast<int64_t>(d) == dim ? 0 : at[d] * strides[d];
    places.setIntegerAt(i, element);
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  ir::Value* which = index;
  const int64_t stride = strides[static_cast<size_t>(dim)];
  if (stride != 1)
    which = aten::MulTensor::create(
        b, which, b.constant(convert(Tensor::scalar(static_cast<double>(stride)), which->dtype())));
  which = aten::AddTensor::create(b, which, b.constant(convert(places, which->dtype())));
  which = aten::View::create(b, which, ir::Ints{which->numElements()});
  if (source->rank() > 0) {
    for (int64_t d = 0; d < source->rank(); ++d) {
      if (source->dim(d) != index->dim(d))
        source = aten::SliceTensor::create(b, source, d, int64_t{0}, index->dim(d));
    }
    source = aten::Reshape::create(b, source, ir::Ints{index->numElements()});
  }
  ir::Value* flat = aten::View::create(b, self, ir::Ints{self->numElements()});
  ir::Value* result = aten::IndexPut::create(b, flat, {which}, source);
  return aten::View::create(b, result, self->shape());
}

// Limit on positions times sources of all lines, which are compared individually; larger scatters are not
// rewritten.
constexpr int64_t kMaxComparisons = int64_t{1} << 20;

/// Lines of a tensor [L, S] and the values to write: sources [L, K] at positions [L, K].
class Lines {
 public:
  Lines(ir::Builder& b, ir::Value* self, ir::Value* index, ir::Value* source, int64_t dim)
      : b_(b), self_(lined(self, dim)), index_(lined(index, dim)), source_(lined(source, dim)) {
    const int64_t size = self_->dim(1);
    std::vector<int64_t> numbers(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) numbers[static_cast<size_t>(i)] = i;
    ir::Value* places = b_.constant(convert(Tensor::from({size, 1}, numbers), index->dtype()));
    selected_ = aten::EqTensor::create(b_, wide(index_), places);
  }

  /// The lines with the sources reduced into them; null for unknown reductions.
  ir::Value* reduced(const std::string& how, bool includeSelf) {
    ir::Value* result = nullptr;
    if (how == "sum" || how == "mean") {
      ir::Value* ones = asNumber(selected_);
      ir::Value* column = aten::View::create(b_, source_, ir::Ints{lines(), written(), 1});
      result = aten::View::create(b_, aten::Bmm::create(b_, ones, column), self_->shape());
      if (includeSelf) result = aten::AddTensor::create(b_, result, self_);
      if (how == "mean") {
        ir::Value* count = aten::SumDimIntList::create(b_, ones, ir::Ints{2});
        count =
            includeSelf ? aten::AddScalar::create(b_, count, 1.0) : aten::ClampMin::create(b_, count, 1.0);
        result = aten::DivTensor::create(b_, result, count);
      }
      return includeSelf ? result : whereSelected(result);
    }
    if (how == "prod") {
      ir::Value* factors = aten::WhereSelf::create(b_, selected_, wide(source_), number(b_, 1, 0));
      result = aten::ProdDimInt::create(b_, factors, int64_t{2});
      return includeSelf ? aten::MulTensor::create(b_, result, self_) : whereSelected(result);
    }
    if (how != "amax" && how != "amin") return nullptr;
    // Sources for other positions are replaced by the opposite extreme of all sources: it never wins and does
    // not widen the range.
    const bool largest = how == "amax";
    const ir::Ints all{0, 1};
    ir::Value* never = largest ? aten::Amin::create(b_, source_, all) : aten::Amax::create(b_, source_, all);
    ir::Value* choice = aten::WhereSelf::create(b_, selected_, wide(source_), never);
    result =
        largest ? aten::Amax::create(b_, choice, ir::Ints{2}) : aten::Amin::create(b_, choice, ir::Ints{2});
    if (includeSelf) {
      result = largest ? aten::Maximum::create(b_, result, self_) : aten::Minimum::create(b_, result, self_);
    }
    return whereSelected(result);
  }

 private:
  int64_t lines() const { return self_->dim(0); }
  int64_t written() const { return source_->dim(1); }
  static ir::Ints lastBehind(int64_t rank, int64_t dim) {
    ir::Ints order;
    for (int64_t d = 0; d < rank; ++d) {
      if (d != dim) order.push_back(d);
    }
    order.push_back(dim);
    return order;
  }
  ir::Value* lined(ir::Value* x, int64_t dim) {
    const int64_t size = x->dim(dim);
    ir::Value* moved = aten::Permute::create(b_, x, lastBehind(x->rank(), dim));
    return aten::Reshape::create(b_, moved, ir::Ints{x->numElements() / size, size});
  }
  ir::Value* wide(ir::Value* x) { return aten::View::create(b_, x, ir::Ints{x->dim(0), 1, x->dim(1)}); }
  ir::Value* asNumber(ir::Value* x) { return aten::PrivateToCopy::create(b_, x, DType::Float32); }
  ir::Value* whereSelected(ir::Value* result) {
    ir::Value* hit = aten::AnyDim::create(b_, selected_, int64_t{2});
    return aten::WhereSelf::create(b_, hit, result, self_);
  }

  ir::Builder& b_;
  ir::Value *self_, *index_, *source_;
  ir::Value* selected_ = nullptr;  // [L, S, K]
};

/// scatter_add, scatter_reduce: every position is compared with the index of each source of its line.
ir::Value* rewriteScatterReduce(ir::Builder& b, ir::Node* node) {
  const auto adds = ir::dynCast<aten::ScatterAdd>(node);
  const auto op = ir::dynCast<aten::ScatterReduceTwo>(node);
  if ((!adds && !op) || isQuantizedAsUnit(*node)) return nullptr;
  ir::Value* self = node->operands()[0];
  ir::Value* index = adds ? adds.index() : op.index();
  ir::Value* source = adds ? adds.src() : op.src();
  int64_t dim = adds ? adds.dim() : op.dim();
  const std::string how = adds ? "sum" : op.reduce();
  const bool includeSelf = adds || op.includeSelf();
  if (self->dtype() != DType::Float32 || source->dtype() != DType::Float32 || self->rank() == 0 ||
      index->rank() != self->rank() || source->rank() != self->rank() || index->numElements() == 0)
    return nullptr;
  dim = wrapped(dim, self->rank());
  if (op && how == "sum" && includeSelf) {
    return aten::ScatterAdd::create(b, self, index, source, dim);
  }
  if (index->numElements() > kMaxComparisons / self->dim(dim)) return nullptr;
  const auto narrowed = [&](ir::Value* x, int64_t d) {
    return aten::SliceTensor::create(b, x, d, int64_t{0}, index->dim(d));
  };
  std::vector<std::pair<int64_t, ir::Value*>> whole;  // dimensions of which only a part is written
  for (int64_t d = 0; d < self->rank(); ++d) {
    if (source->dim(d) != index->dim(d)) source = narrowed(source, d);
    if (d == dim || self->dim(d) == index->dim(d)) continue;
    whole.emplace_back(d, self);
    self = narrowed(self, d);
  }
  ir::Value* lines = Lines(b, self, index, source, dim).reduced(how, includeSelf);
  if (!lines) return nullptr;
  Shape moved = self->shape();
  moved.erase(moved.begin() + dim);
  moved.push_back(self->dim(dim));
  ir::Value* result = aten::View::create(b, lines, moved);
  result = aten::MovedimInt::create(b, result, int64_t{-1}, dim);
  for (auto at = whole.rbegin(); at != whole.rend(); ++at)
    result = aten::SliceScatter::create(b, at->second, result, at->first, int64_t{0}, index->dim(at->first));
  return result;
}

/// masked_scatter: the n-th true position of the mask receives the n-th source; n is the running count of the
/// mask.
ir::Value* rewriteMaskedScatter(ir::Builder& b, aten::MaskedScatter op) {
  if (isQuantizedAsUnit(op) || op.self()->numElements() == 0 || op.source()->numElements() == 0)
    return nullptr;
  const Shape& shape = op->result()->shape();
  ir::Value* mask = op.mask();
  if (mask->shape() != shape) mask = aten::Expand::create(b, mask, shape);
  const ir::Ints flat{numElements(shape)};
  ir::Value* count = aten::PrivateToCopy::create(b, aten::Reshape::create(b, mask, flat), DType::Int64);
  count = aten::Cumsum::create(b, count, int64_t{0});
  count = aten::SubScalar::create(b, count, int64_t{1});
  ir::Value* zero = b.constant(Tensor::zeros(DType::Int64, {}));
  ir::Value* which = aten::Maximum::create(b, count, zero);
  ir::Value* sources = aten::Reshape::create(b, op.source(), ir::Ints{op.source()->numElements()});
  ir::Value* taken = aten::IndexSelect::create(b, sources, which, int64_t{0});
  taken = aten::View::create(b, taken, shape);
  return aten::WhereSelf::create(b, mask, taken, op.self());
}

}  // namespace

void addScatterRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteScatter, rewriteScatterReduce, rewriteMaskedScatter);
}

}  // namespace carina::decompose
