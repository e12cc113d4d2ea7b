// SPDX-License-Identifier: Apache-2.0
// Indexing by several tensors, in the middle of a tensor or element by element: as rows of one flattened
// dimension, selected or replaced by one vector of indices. (Scatters are in scatter.cpp.)
#include <algorithm>
#include <numeric>

#include "aten/movement_rules.hpp"
#include "aten/ops.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

bool isMask(const ir::Value* index) {
  return index->dtype() == DType::Bool || index->dtype() == DType::UInt8;
}

/// A tensor with its indexed dimensions in front and flattened into one: [rows, rest...].
struct Rows {
  ir::Ints order;  // dimensions of the tensor: indexed ones first, then the others
  ir::Ints sizes;  // their sizes
  size_t indexed = 0;
  size_t first = 0;            // position of the index dimensions in the result of indexing
  ir::Value* which = nullptr;  // [B] row indices
  Shape joint;                 // the shape that the indices broadcast to; B elements

  int64_t count() const {
    return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(indexed), int64_t{1},
                           std::multiplies<>());
  }
  Shape rest() const { return {sizes.begin() + static_cast<std::ptrdiff_t>(indexed), sizes.end()}; }
  /// `leading` followed by the sizes of the dimensions that are not indexed.
  ir::Ints withRest(const Shape& leading) const {
    ir::Ints shape = leading;
    const Shape kept = rest();
    shape.insert(shape.end(), kept.begin(), kept.end());
    return shape;
  }
  ir::Value* of(ir::Builder& b, ir::Value* tensor) const {
    return aten::Reshape::create(b, permuted(b, tensor, order), withRest({count()}));
  }
  ir::Value* back(ir::Builder& b, ir::Value* rows) const {
    ir::Value* tensor = aten::View::create(b, rows, sizes);
    ir::Ints inverse(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    return permuted(b, tensor, inverse);
  }
  static ir::Value* permuted(ir::Builder& b, ir::Value* tensor, const ir::Ints& order) {
    return std::is_sorted(order.begin(), order.end()) ? tensor : aten::Permute::create(b, tensor, order);
  }
};

/// Indices counted from the front; negative ones count from the end of `extent`.
ir::Value* fromFront(ir::Builder& b, ir::Value* index, int64_t extent) {
  if (!index->isConstant()) {
    // All ones for negative numbers, so that the extent is only added to these.
    ir::Value* negative = aten::BitwiseRightShiftTensorScalar::create(b, index, int64_t{31});
    ir::Value* back = aten::BitwiseAndScalar::create(b, negative, extent);
    return aten::AddTensor::create(b, index, back);
  }
  Tensor counted = convert(index->constant(), DType::Int64);
  for (int64_t i = 0; i < counted.numElements(); ++i) {
    if (counted.integerAt(i) < 0) counted.setIntegerAt(i, counted.integerAt(i) + extent);
  }
  return b.constant(std::move(counted));
}

size_t countOf(std::span<ir::Value* const> indices) {
  return static_cast<size_t>(
      std::count_if(indices.begin(), indices.end(), [](const ir::Value* v) { return v != nullptr; }));
}

/// The row indices that several index tensors select together.
std::optional<Rows> rowsOf(ir::Builder& b, const ir::Value* self, std::span<ir::Value* const> indices) {
  Rows rows;
  bool adjacent = true;
  ir::Value* which = nullptr;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    if (isMask(indices[d]) || self->shape()[d] == 0) return std::nullopt;
    if (!rows.order.empty() && rows.order.back() + 1 != static_cast<int64_t>(d)) adjacent = false;
    if (rows.order.empty()) rows.first = d;
    rows.order.push_back(static_cast<int64_t>(d));
    // A single index is passed to an operator that handles negative values itself.
    ir::Value* index = countOf(indices) > 1 || indices[d]->isConstant()
                           ? fromFront(b, indices[d], self->shape()[d])
                           : indices[d];
    if (which) {
      if (index->dtype() != which->dtype()) {
        index = aten::PrivateToCopy::create(b, index, DType::Int64);
        which = aten::PrivateToCopy::create(b, which, DType::Int64);
      }
      const Tensor extent = convert(Tensor::scalar(static_cast<double>(self->shape()[d])), which->dtype());
      which = aten::MulTensor::create(b, which, b.constant(extent));
      index = aten::AddTensor::create(b, which, index);
    }
    which = index;
  }
  if (!which) return std::nullopt;
  if (!adjacent) rows.first = 0;
  rows.indexed = rows.order.size();
  for (int64_t d = 0; d < self->rank(); ++d) {
    if (std::find(rows.order.begin(), rows.order.begin() + static_cast<std::ptrdiff_t>(rows.indexed), d) ==
        rows.order.begin() + static_cast<std::ptrdiff_t>(rows.indexed))
      rows.order.push_back(d);
  }
  for (int64_t d : rows.order) rows.sizes.push_back(self->dim(d));
  rows.joint = which->shape();
  rows.which = aten::View::create(b, which, ir::Ints{which->numElements()});
  return rows;
}

/// The dimension order in [0, rank) that moves `count` dimensions from the front to after `first` others.
ir::Ints movedBehind(size_t rank, size_t count, size_t first) {
  ir::Ints order;
  for (size_t i = 0; i < first; ++i) order.push_back(static_cast<int64_t>(count + i));
  for (size_t i = 0; i < count; ++i) order.push_back(static_cast<int64_t>(i));
  for (size_t i = count + first; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  return order;
}

/// x[:, i]: rows along one dimension. (A constant index has an operator of its own on the NPU.)
ir::Value* pickedRows(ir::Builder& b, const aten::IndexTensor& op) {
  const auto indices = op.indices();
  const auto at = std::find_if(indices.begin(), indices.end(), [](const ir::Value* v) { return v; });
  const int64_t dim = at - indices.begin();
  if (isMask(*at) || (*at)->isConstant() || isQuantizedAsUnit(op)) return nullptr;
  ir::Value* which = aten::View::create(b, *at, ir::Ints{(*at)->numElements()});
  which = fromFront(b, which, op.self()->dim(dim));
  ir::Value* rows = aten::IndexSelect::create(b, op.self(), which, dim);
  return aten::View::create(b, rows, op->result()->shape());
}

/// x[i, j]: selected rows, whose dimensions are then moved to where PyTorch places them.
ir::Value* rewriteIndexTensor(ir::Builder& b, aten::IndexTensor op) {
  if (countOf(op.indices()) == 0) return nullptr;
  if (countOf(op.indices()) == 1) return pickedRows(b, op);
  const auto rows = rowsOf(b, op.self(), op.indices());
  if (!rows) return nullptr;
  ir::Value* picked = aten::IndexSelect::create(b, rows->of(b, op.self()), rows->which, int64_t{0});
  picked = aten::View::create(b, picked, rows->withRest(rows->joint));
  return Rows::permuted(b, picked,
                        movedBehind(static_cast<size_t>(picked->rank()), rows->joint.size(), rows->first));
}

/// x[mask] = value as where(). The mask covers dimensions after `first` others, the value applies to all of
/// them.
ir::Value* putMasked(ir::Builder& b, const aten::IndexPut& op, size_t first) {
  ir::Value* mask = op.indices()[first];
  ir::Value* self = op.self();
  const auto behind = self->rank() - static_cast<int64_t>(first) - mask->rank();
  // Separate values for each masked position would require counting.
  const Shape& values = op.values()->shape();
  const bool forAll = static_cast<int64_t>(values.size()) <= behind || op.values()->numElements() == 1;
  if (!forAll || op.accumulate() || mask->dtype() != DType::Bool ||
      (first > 0 && op.values()->numElements() != 1))
    return nullptr;
  ir::Ints shape = mask->shape();
  shape.insert(shape.end(), static_cast<size_t>(behind), 1);
  ir::Value* wide = aten::View::create(b, mask, shape);
  ir::Value* value =
      op.values()->numElements() == 1 ? aten::View::create(b, op.values(), ir::Ints{}) : op.values();
  return aten::WhereSelf::create(b, wide, value, self);
}

/// Whether a row is selected, [rows, B].
ir::Value* selection(ir::Builder& b, const Rows& rows) {
  const Tensor all =
      convert(Tensor::from({rows.count(), 1}, numbersBelow(rows.count())), rows.which->dtype());
  return aten::EqTensor::create(b, b.constant(all), rows.which);
}

// Integers have no matrix product: limit on rows times values, which are selected and summed individually.
constexpr int64_t kMaxChosen = int64_t{1} << 20;

/// The sum to add to each row, [rows, inner]: values [B, inner] of equal rows are summed.
ir::Value* sumsOf(ir::Builder& b, const Rows& rows, ir::Value* values) {
  ir::Value* meant = selection(b, rows);
  const DType type = values->dtype();
  if (type == DType::Float32) {
    ir::Value* ones = aten::PrivateToCopy::create(b, meant, type);
    return aten::Matmul::create(b, ones, values);
  }
  meant = aten::View::create(b, meant, ir::Ints{meant->dim(0), meant->dim(1), 1});
  ir::Value* zero = b.constant(Tensor::zeros(type, {}));
  ir::Value* chosen = aten::WhereSelf::create(b, meant, values, zero);
  return aten::SumDimIntList::create(b, chosen, ir::Ints{1}, false, type);
}

/// Whether index_put replaces what the NPU's SCATTER replaces: rows of one tensor, or one row in each of a
/// few tensors side by side, as the keys and values of a decoder are written for all heads at one position.
/// The values may still have to be expanded.
bool putsRows(const aten::IndexPut& op, size_t first) {
  constexpr int64_t kMostTables = 16;
  const ir::Value* index = op.indices()[first];
  if (op.accumulate() || countOf(op.indices()) != 1 || index->rank() != 1) return false;
  if (first == 0) return true;
  const Shape& shape = op.self()->shape();
  const int64_t tables = std::accumulate(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(first),
                                         int64_t{1}, std::multiplies<>());
  return !index->isConstant() && index->numElements() == 1 && tables > 0 && tables <= kMostTables;
}

/// x[i, j] = v with any number of indices at any dimensions, values that broadcast, and accumulation.
ir::Value* rewriteIndexPut(ir::Builder& b, aten::IndexPut op) {
  if (isQuantizedAsUnit(op)) return nullptr;
  const auto indices = op.indices();
  const size_t count = countOf(indices);
  if (count == 0) return nullptr;
  const auto first = static_cast<size_t>(
      std::find_if(indices.begin(), indices.end(), [](const ir::Value* v) { return v; }) - indices.begin());
  if (isMask(indices[first])) return count == 1 ? putMasked(b, op, first) : nullptr;
  if (putsRows(op, first)) {
    Shape put = op.self()->shape();
    put[first] = indices[first]->numElements();
    if (op.values()->numElements() == numElements(put)) return nullptr;
    return aten::IndexPut::create(b, op.self(), {indices.begin(), indices.end()},
                                  aten::Expand::create(b, op.values(), put));
  }
  const DType type = op.self()->dtype();
  if (op.accumulate() && type != DType::Float32 && type != DType::Int32 && type != DType::Int64)
    return nullptr;
  const auto rows = rowsOf(b, op.self(), indices);
  if (!rows) return nullptr;
  if (op.accumulate() && type != DType::Float32 &&
      op.self()->numElements() > kMaxChosen / std::max<int64_t>(rows->which->numElements(), 1))
    return nullptr;
  // Values in the shape of the indexing result, then with the index dimensions in front.
  const size_t joint = rows->joint.size();
  const Shape rest = rows->rest();
  ir::Ints indexedShape(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(rows->first));
  indexedShape.insert(indexedShape.end(), rows->joint.begin(), rows->joint.end());
  indexedShape.insert(indexedShape.end(), rest.begin() + static_cast<std::ptrdiff_t>(rows->first),
                      rest.end());
  ir::Value* values = op.values();
  if (values->shape() != indexedShape) values = aten::Expand::create(b, values, indexedShape);
  ir::Ints toFront;
  for (size_t i = 0; i < joint; ++i) toFront.push_back(static_cast<int64_t>(rows->first + i));
  for (size_t i = 0; i < indexedShape.size(); ++i) {
    if (i < rows->first || i >= rows->first + joint) toFront.push_back(static_cast<int64_t>(i));
  }
  const int64_t replaced = rows->which->numElements();
  values = aten::Reshape::create(b, Rows::permuted(b, values, toFront), rows->withRest({replaced}));
  ir::Value* table = rows->of(b, op.self());
  ir::Value* result = nullptr;
  if (op.accumulate()) {
    ir::Value* flat = aten::Reshape::create(
        b, values, ir::Ints{replaced, values->numElements() / std::max<int64_t>(replaced, 1)});
    ir::Value* sums = sumsOf(b, *rows, flat);
    result = aten::AddTensor::create(b, table, aten::View::create(b, sums, table->shape()));
  } else {
    result = aten::IndexPut::create(b, table, {rows->which}, values);
  }
  return rows->back(b, result);
}

/// index_copy, index_fill: index_put without indices for the dimensions before `dim`.
ir::Value* rewriteIndexCopy(ir::Builder& b, ir::Node* node) {
  ir::Value* self = nullptr;
  ir::Value* index = nullptr;
  ir::Value* source = nullptr;
  int64_t dim = 0;
  if (const auto copy = ir::dynCast<aten::IndexCopy>(node)) {
    self = copy.self(), index = copy.index(), source = copy.source(), dim = copy.dim();
  } else if (const auto fill = ir::dynCast<aten::IndexFillIntScalar>(node)) {
    self = fill.self(), index = fill.index(), dim = fill.dim();
    source = b.constant(convert(Tensor::scalar(ir::scalarReal(fill.value())), self->dtype()));
  } else {
    return nullptr;
  }
  if (self->rank() == 0 || index->rank() > 1) return nullptr;
  dim = wrapped(dim, self->rank());
  if (index->rank() == 0) index = aten::View::create(b, index, ir::Ints{1});
  std::vector<ir::Value*> indices(static_cast<size_t>(dim), nullptr);
  indices.push_back(index);
  return aten::IndexPut::create(b, self, indices, source);
}

/// index_add: index_put that accumulates.
ir::Value* rewriteIndexAdd(ir::Builder& b, aten::IndexAdd op) {
  if (isQuantizedAsUnit(op) || op.self()->rank() == 0 || op.index()->rank() > 1) return nullptr;
  const int64_t dim = wrapped(op.dim(), op.self()->rank());
  ir::Value* index = aten::View::create(b, op.index(), ir::Ints{op.index()->numElements()});
  ir::Value* source = op.source();
  if (ir::scalarReal(op.alpha()) != 1) source = aten::MulScalar::create(b, source, op.alpha());
  std::vector<ir::Value*> indices(static_cast<size_t>(dim), nullptr);
  indices.push_back(index);
  return aten::IndexPut::create(b, op.self(), indices, source, true);
}

/// take: single elements of the flattened tensor.
ir::Value* rewriteTake(ir::Builder& b, aten::Take op) {
  if (op.self()->numElements() == 0) return nullptr;
  ir::Value* flat = aten::Reshape::create(b, op.self(), ir::Ints{op.self()->numElements()});
  ir::Value* index = aten::Reshape::create(b, op.index(), ir::Ints{op.index()->numElements()});
  ir::Value* taken = aten::IndexTensor::create(b, flat, {index});
  return aten::View::create(b, taken, op->result()->shape());
}

/// slice_scatter with a step: index_put at the positions of the slice.
ir::Value* rewriteStepped(ir::Builder& b, aten::SliceScatter op) {
  if (op.step() == 1 || op.src()->numElements() == 0) return nullptr;
  const int64_t dim = wrapped(op.dim(), op.self()->rank()), extent = op.self()->dim(dim);
  int64_t start = op.start().value_or(0);
  if (start < 0) start += extent;
  std::vector<int64_t> places(static_cast<size_t>(op.src()->dim(dim)));
  for (size_t i = 0; i < places.size(); ++i)
    places[i] = std::clamp<int64_t>(start, 0, extent) + static_cast<int64_t>(i) * op.step();
  std::vector<ir::Value*> indices(static_cast<size_t>(dim), nullptr);
  indices.push_back(b.constant(Tensor::from({op.src()->dim(dim)}, places)));
  return aten::IndexPut::create(b, op.self(), indices, op.src());
}

/// Converts the source of slice_scatter and select_scatter to the shape of the region and the tensor's type.
Result<bool> rewriteScatteredSource(ir::Node* node) {
  if (!ir::isa<aten::SliceScatter>(node) && !ir::isa<aten::SelectScatter>(node)) return false;
  ir::Value *self = node->operands()[0], *source = node->operands()[1];
  CARINA_TRY(const aten::Movement region, aten::cut(*node));
  if (numElements(region.result) == 0) {
    replaceNode(node, self);
    return true;
  }
  if (source->shape() == region.result && source->dtype() == self->dtype()) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  if (source->dtype() != self->dtype()) source = aten::PrivateToCopy::create(b, source, self->dtype());
  if (source->shape() != region.result) source = aten::Expand::create(b, source, region.result);
  node->setOperand(1, source);
  return true;
}

}  // namespace

void addIndexRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteIndexTensor, rewriteIndexPut, rewriteIndexCopy, rewriteIndexAdd, rewriteTake,
              rewriteScatteredSource, rewriteStepped);
}

}  // namespace carina::decompose
