// SPDX-License-Identifier: Apache-2.0
// Rows selected by index tensors: GATHER and SCATTER; constant indices become slices if few are needed.
#include <algorithm>
#include <numeric>

#include "aten/ops.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

// Maximum number of runs of evenly spaced constant indices that are sliced separately; more are gathered.
constexpr size_t kMaxSlices = 16;
constexpr int64_t kShortRow = 16;  // elements

std::vector<int> movedLast(int64_t rank, int64_t dim) {
  std::vector<int> order;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != dim) order.push_back(static_cast<int>(d));
  }
  order.push_back(static_cast<int>(dim));
  return order;
}

struct IndexRun {
  int64_t start, count = 1, step = 1;

  /// Appends `at` if it continues the run; the second index determines the step.
  bool take(int64_t at) {
    if (count == 1 && at > start) step = at - start;
    if (at != start + count * step) return false;
    ++count;
    return true;
  }
};

/// Evenly spaced runs of constant indices, if there are few.
std::optional<std::vector<IndexRun>> constantRuns(const ir::Value* index, int64_t extent) {
  if (!index->isConstant()) return std::nullopt;
  std::vector<IndexRun> runs;
  for (int64_t i = 0; i < index->numElements(); ++i) {
    const int64_t at = wrapped(index->constant().integerAt(i), extent);
    if (at < 0 || at >= extent) return std::nullopt;
    if (runs.empty() || !runs.back().take(at)) runs.push_back({at});
    if (runs.size() > kMaxSlices) return std::nullopt;
  }
  return runs;
}

/// GATHER and SCATTER do not accept bool, which becomes int8.
StoredTensor asBytes(Lowering& lowering, StoredTensor data) {
  if (data.dtype() == DType::Bool) data.value = lowering.emit().cast(data.value, DType::Int8);
  return data;
}
ir::Value* asBool(Lowering& lowering, const ir::Value* source, ir::Value* result) {
  return source->dtype() == DType::Bool ? lowering.emit().cast(result, DType::Bool) : result;
}

/// Selects rows [W] along `dim`: values are [outer, K, inner], with the same W rows for every outer index.
/// Short rows of several tables are joined if most are selected: outer * W of them would cost more than
/// transposing the values.
Status pickRows(Lowering& lowering, const ir::Node& node, const ir::Value* values, const ir::Value* index,
                int64_t dim) {
  CARINA_TRY(const StoredTensor data, lowering.movable(values));
  Emitter& emit = lowering.emit();
  if (const auto runs = constantRuns(index, values->dim(dim))) {
    const std::vector<int> order = lowering.commonOrder({data});
    const int64_t axis = std::find(order.begin(), order.end(), static_cast<int>(dim)) - order.begin();
    ir::Value* whole = lowering.ordered(data, order);
    std::vector<ir::Value*> pieces;
    for (const IndexRun& run : *runs) {
      const bool pair = run.count == 2 && run.step > 1;  // two slices cost less than a strided one
      for (int64_t i = 0; i < (pair ? 2 : 1); ++i)
        pieces.push_back(
            emit.sliceEvery(whole, axis, run.start + i * run.step, pair ? 1 : run.count, run.step));
    }
    Shape shape = values->shape();
    shape[static_cast<size_t>(dim)] = index->numElements();
    StoredTensor result{emit.concat(pieces, axis), Layout::ordered(shape, order)};
    return lowering.defineMoved(node.result(), values, lowering.viewed(result, node.result()->shape()));
  }
  const Shape& s = values->shape();
  const int64_t outer = numElements(Shape(s.begin(), s.begin() + dim)), rows = s[static_cast<size_t>(dim)];
  CARINA_TRY(StoredTensor indices, lowering.integers(index));
  if (index->isConstant()) {  // GATHER requires nonnegative indices
    Tensor counted = convert(index->constant(), DType::Int32);
    for (int64_t i = 0; i < counted.numElements(); ++i)
      counted.setIntegerAt(i, wrapped(counted.integerAt(i), rows));
    indices.value = emit.constant(std::move(counted));
  }
  const int64_t inner = numElements(Shape(s.begin() + dim + 1, s.end())), picked = index->numElements();
  if (outer > 1 && inner < kShortRow && 2 * picked >= rows) {
    std::vector<int> order{static_cast<int>(dim)};
    Shape stored{picked}, shape = s;
    for (int d = 0; d < static_cast<int>(s.size()); ++d) {
      if (d == dim) continue;
      order.push_back(d);
      stored.push_back(s[static_cast<size_t>(d)]);
    }
    shape[static_cast<size_t>(dim)] = picked;
    ir::Value* table =
        emit.reshape(lowering.ordered(asBytes(lowering, data), order), {1, rows, outer * inner});
    ir::Value* chosen = emit.gather(table, emit.reshape(lowering.rowMajor(indices), {1, picked}));
    const StoredTensor result{asBool(lowering, values, emit.reshape(chosen, stored)),
                              Layout::ordered(shape, order)};
    return lowering.defineMoved(node.result(), values, lowering.viewed(result, node.result()->shape()));
  }
  ir::Value* table = emit.reshape(lowering.rowMajor(asBytes(lowering, data)), {outer, rows, inner});
  ir::Value* which = emit.tile(emit.reshape(lowering.rowMajor(indices), {1, picked}), {outer, 1});
  ir::Value* result = asBool(lowering, values, emit.gather(table, which));
  return lowering.defineMoved(node.result(), values, {result, Layout::rowMajor(node.result()->shape())});
}

Status lowerEmbedding(Lowering& lowering, const ir::Node& node) {
  const aten::Embedding op = ir::cast<aten::Embedding>(&node);
  return pickRows(lowering, node, op.weight(), op.indices(), 0);
}

Status lowerIndexSelect(Lowering& lowering, const ir::Node& node) {
  const aten::IndexSelect op = ir::cast<aten::IndexSelect>(&node);
  return pickRows(lowering, node, op.self(), op.index(), wrapped(op.dim(), op.self()->rank()));
}

/// One index tensor over one dimension; the other dimensions are read entirely.
Status lowerIndexTensor(Lowering& lowering, const ir::Node& node) {
  const aten::IndexTensor op = ir::cast<aten::IndexTensor>(&node);
  const ir::Value* index = nullptr;
  int64_t dim = 0;
  for (size_t i = 0; i < op.indices().size(); ++i) {
    if (!op.indices()[i]) continue;
    if (index)
      return fail(Code::NoIntegerForm, "indexing with several index tensors is not supported on the NPU")
          .withRemedy("index one dimension at a time");
    index = op.indices()[i];
    dim = static_cast<int64_t>(i);
  }
  if (!index || index->dtype() == DType::Bool || index->dtype() == DType::UInt8) {
    return fail(Code::NoIntegerForm, "indexing with a mask is not supported on the NPU")
        .withRemedy("use where with a value for the masked elements");
  }
  return pickRows(lowering, node, op.self(), index, dim);
}

/// Whether a constant's elements do not change along an axis.
bool repeatsAlong(const Tensor& tensor, size_t axis) {
  const int64_t stride = rowMajorStrides(tensor.shape())[axis], extent = tensor.shape()[axis];
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    if (i / stride % extent > 0 && tensor.integerAt(i) != tensor.integerAt(i - stride)) return false;
  }
  return true;
}

/// An index tensor of aten.gather, with the axes other than `dim` along which its elements do not change.
/// `values` has these elements in `shape`, which may be 1 along such axes.
struct RowIndex {
  const ir::Value* values;
  Shape shape;
  std::vector<bool> repeats;

  RowIndex(const ir::Value* index, int64_t dim)
      : values(index), shape(index->shape()), repeats(shape.size(), false) {
    const Shape& full = index->shape();
    const auto other = [&](size_t axis) { return static_cast<int64_t>(axis) != dim && full[axis] > 1; };
    if (index->isConstant()) {
      for (size_t axis = 0; axis < full.size(); ++axis)
        repeats[axis] = other(axis) && repeatsAlong(index->constant(), axis);
      return;
    }
    if (!index->producer() || !isRepeat(*index->producer())) return;
    Shape before = index->producer()->operands()[0]->shape();
    before.insert(before.begin(), full.size() - before.size(), 1);
    std::vector<bool> repeated(full.size(), false);
    for (size_t axis = 0; axis < full.size(); ++axis) {
      repeated[axis] = before[axis] == 1 && other(axis);
      if (!repeated[axis] && before[axis] != full[axis]) return;  // repeats along `dim`, or several elements
    }
    *this = {index->producer()->operands()[0], std::move(before), std::move(repeated)};
  }

 private:
  RowIndex(const ir::Value* values_, Shape shape_, std::vector<bool> repeats_)
      : values(values_), shape(std::move(shape_)), repeats(std::move(repeats_)) {}
};

/// out[i][j][k] = self[i][index[i][j]][k], where k are the axes along which the index does not change:
/// indices of rows that were expanded over their elements.
Status lowerGather(Lowering& lowering, const ir::Node& node) {
  const aten::Gather op = ir::cast<aten::Gather>(&node);
  const int64_t rank = op.self()->rank(), dim = wrapped(op.dim(), rank);
  const RowIndex index(op.index(), dim);
  CARINA_TRY(const StoredTensor data, lowering.movable(op.self()));
  CARINA_TRY(const StoredTensor indices, lowering.integers(index.values));
  Emitter& emit = lowering.emit();
  std::vector<int> order = movedLast(rank, dim);
  std::stable_partition(order.begin(), order.end(),
                        [&](int axis) { return !index.repeats[static_cast<size_t>(axis)]; });
  ir::Value* values = lowering.ordered(asBytes(lowering, data), order);
  ir::Value* which = lowering.ordered(lowering.viewed(indices, index.shape), order);
  int64_t outer = 1, inner = 1;
  for (size_t at = 0; at < order.size(); ++at) {
    const auto axis = static_cast<size_t>(order[at]);
    if (order[at] == dim) continue;
    const int64_t extent = op.index()->shape()[axis];
    values = emit.sliceAxis(values, static_cast<int64_t>(at), 0, extent);
    if (index.repeats[axis]) which = emit.sliceAxis(which, static_cast<int64_t>(at), 0, 1);
    (index.repeats[axis] ? inner : outer) *= extent;
  }
  const int64_t rows = op.self()->dim(dim), picked = op.index()->dim(dim);
  ir::Value* result =
      emit.gather(emit.reshape(values, {outer, rows, inner}), emit.reshape(which, {outer, picked}));
  result = asBool(lowering, op.self(), result);
  return lowering.defineMoved(node.result(), op.self(),
                              {result, Layout::ordered(node.result()->shape(), order)});
}

/// The last new row that a constant index assigns to each of `rows` rows, -1 if none; empty if an index is
/// out of range.
std::vector<int64_t> lastSources(const Tensor& index, int64_t rows) {
  std::vector<int64_t> source(static_cast<size_t>(rows), -1);
  for (int64_t i = 0; i < index.numElements(); ++i) {
    const int64_t row = wrapped(index.integerAt(i), rows);
    if (row < 0 || row >= rows) return {};
    source[static_cast<size_t>(row)] = i;
  }
  return source;
}

/// Assembles rows of two tables [rows, inner]: new ones where `source` selects one, otherwise kept ones. Null
/// if they alternate too often.
ir::Value* mergedRows(Emitter& emit, ir::Value* kept, ir::Value* put, const std::vector<int64_t>& source) {
  const auto rows = static_cast<int64_t>(source.size());
  std::vector<ir::Value*> pieces;
  for (int64_t row = 0; row < rows;) {
    const int64_t from = source[static_cast<size_t>(row)];
    int64_t count = 1;
    while (row + count < rows && source[static_cast<size_t>(row + count)] == (from < 0 ? -1 : from + count))
      ++count;
    if (pieces.size() == kMaxSlices) return nullptr;
    pieces.push_back(from < 0 ? emit.sliceAxis(kept, 0, row, count) : emit.sliceAxis(put, 0, from, count));
    row += count;
  }
  return emit.concat(pieces, 0);
}

/// The same with one GATHER: rows [1, rows, inner], new ones [1, W, inner].
ir::Value* gatheredRows(Emitter& emit, ir::Value* rows, ir::Value* put, const std::vector<int64_t>& source) {
  const int64_t count = rows->dim(1);
  std::vector<int32_t> which(source.size());
  for (size_t row = 0; row < which.size(); ++row)
    which[row] = static_cast<int32_t>(source[row] < 0 ? static_cast<int64_t>(row) : count + source[row]);
  return emit.gather(emit.concat({rows, put}, 1), emit.constant(Tensor::from({1, count}, which)));
}

// Limit on rows times new rows, which are compared to find the last new row for each row; beyond it, the CPU
// is faster.
constexpr int64_t kMaxComparisons = int64_t{1} << 15;

/// Converts negative indices, which count from the end. Repeats a vector [1, W] for `tables` of them.
ir::Value* fromFront(Emitter& emit, ir::Value* index, int64_t extent, int64_t tables) {
  Shape one(index->shape().size(), 1);
  ir::Value* last = emit.reshape(emit.scalar(DType::Int32, 31), one);
  ir::Value* negative = emit.binary(Binary::ArithmeticRightShift, index, last);
  one[0] = tables;
  ir::Value* extents = emit.constant(
      Tensor::from(one, std::vector<int32_t>(static_cast<size_t>(tables), static_cast<int32_t>(extent))));
  return emit.binary(Binary::Add, index, emit.binary(Binary::BitwiseAnd, negative, extents));
}

/// For each of `count` rows, the last of the rows assigned to it, counted behind all of them, or its own
/// number: [1, count]. `which` [1, W]: the row that each is assigned to.
ir::Value* lastRows(Emitter& emit, ir::Value* which, int64_t count) {
  const int64_t replaced = which->dim(1);
  std::vector<int32_t> own(static_cast<size_t>(count)), other(static_cast<size_t>(replaced));
  std::iota(own.begin(), own.end(), 0);
  std::iota(other.begin(), other.end(), static_cast<int32_t>(count));
  ir::Value* numbers = emit.constant(Tensor::from({count, 1}, own));
  ir::Value* meant = emit.binary(Binary::Equal, which, numbers);
  ir::Value* source = emit.select(meant, emit.constant(Tensor::from({1, replaced}, other)), numbers);
  return emit.reshape(emit.reduce(Reduce::Max, source, 1), {1, count});
}

/// self with rows replaced: one index vector over a dimension. The dimensions before it are tables side by
/// side, in each of which one row is replaced.
Status lowerIndexPut(Lowering& lowering, const ir::Node& node) {
  const aten::IndexPut op = ir::cast<aten::IndexPut>(&node);
  if (op.accumulate())
    return fail(Code::NoIntegerForm, "index_put with accumulate is not supported on the NPU")
        .withRemedy("add to the picked rows instead");
  const auto given = op.indices();
  const auto isGiven = [](const ir::Value* index) { return index != nullptr; };
  const auto at = std::find_if(given.begin(), given.end(), isGiven);
  if (at == given.end() || std::any_of(at + 1, given.end(), isGiven) || (*at)->dtype() == DType::Bool ||
      (*at)->rank() != 1 || (at != given.begin() && ((*at)->isConstant() || (*at)->numElements() != 1))) {
    return fail(Code::NoIntegerForm, "index_put is supported on the NPU with one index vector only")
        .withRemedy("index the first dimension only");
  }
  const ir::Value* index = *at;
  CARINA_TRY(const StoredTensor indices, lowering.integers(index));
  std::vector<StoredTensor> data;
  std::optional<Codes> codes;
  const std::array<ir::Value*, 2> sources{op.self(), op.values()};
  if (lowering.isFloatValue(op.self())) {
    CARINA_TRY(SameCodes same, sameCodes(lowering, sources, node.result()));
    data = std::move(same.data);
    codes = same.codes;
  } else {
    for (const ir::Value* source : sources) {
      CARINA_TRY(StoredTensor integers, lowering.integers(source));
      data.push_back(std::move(integers));
    }
  }
  const Shape& s = op.self()->shape();
  const int64_t tables = numElements(Shape(s.begin(), s.begin() + (at - given.begin())));
  const int64_t rows = s[static_cast<size_t>(at - given.begin())], replaced = index->numElements();
  const int64_t inner = op.self()->numElements() / (tables * rows);
  if (op.values()->numElements() != tables * replaced * inner) {
    return fail(Code::NoIntegerForm, "index_put of a broadcast value is not supported on the NPU")
        .withRemedy("expand the values to the picked rows");
  }
  Emitter& emit = lowering.emit();
  ir::Value* result = nullptr;
  std::vector<int64_t> source;
  if (index->isConstant()) {
    source = lastSources(index->constant(), rows);
    if (source.empty()) return fail(Code::NoResult, "an index is out of range for {} rows", rows);
    result = mergedRows(emit, emit.reshape(lowering.rowMajor(data[0]), {rows, inner}),
                        emit.reshape(lowering.rowMajor(data[1]), {replaced, inner}), source);
  }
  if (!result) {
    if (source.empty() && replaced > 1 && rows > kMaxComparisons / replaced) {
      return fail(Code::NoIntegerForm,
                  "index_put of {} rows into {} needs indices that are known at compile time", replaced, rows)
          .withRemedy("write one row at a time, or at constant indices");
    }
    for (StoredTensor& operand : data) operand = asBytes(lowering, operand);
    ir::Value* table = emit.reshape(lowering.rowMajor(data[0]), {tables, rows, inner});
    ir::Value* put = emit.reshape(lowering.rowMajor(data[1]), {tables, replaced, inner});
    if (!source.empty()) {
      result = gatheredRows(emit, table, put, source);
    } else {
      // Decoders write keys and values of all layers to the same rows. SCATTER must not write a row twice:
      // with several, each row of the result is gathered from both tables.
      ir::Value*& numbers = lowering.rowNumbers(index, rows, tables);
      if (!numbers) {
        ir::Value* which =
            fromFront(emit, emit.reshape(lowering.rowMajor(indices), {1, replaced}), rows, tables);
        numbers = replaced == 1 ? which : lastRows(emit, which, rows);
      }
      result = replaced == 1 ? emit.scatter(table, numbers, put)
                             : emit.gather(emit.concat({table, put}, 1), numbers);
    }
    result = asBool(lowering, op.self(), result);
  }
  StoredTensor stored{result, Layout::rowMajor(s)};
  if (codes)
    lowering.define(
        node.result(),
        QuantizedValue{std::move(stored), {codes->scale}, codes->zeroPoint, false, {}, {}, {}, {}});
  else
    lowering.define(node.result(), std::move(stored));
  return {};
}

}  // namespace

void addIndexRules(Rules& rules) {
  rules[&aten::Embedding::def()] = lowerEmbedding;
  rules[&aten::IndexSelect::def()] = lowerIndexSelect;
  rules[&aten::IndexTensor::def()] = lowerIndexTensor;
  rules[&aten::Gather::def()] = lowerGather;
  rules[&aten::IndexPut::def()] = lowerIndexPut;
}

}  // namespace carina::lower
