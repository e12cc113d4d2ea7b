// SPDX-License-Identifier: Apache-2.0
// Operators that cut, join, pad, repeat or reorder elements without computing on them.
#include <algorithm>
#include <cmath>

#include "aten/ops.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

/// A value whose TOSA dimensions are the aten dimensions in some order.
struct LayoutView {
  ir::Value* value = nullptr;
  std::vector<int> order;

  int64_t axisOf(int64_t dim) const {
    return std::find(order.begin(), order.end(), static_cast<int>(dim)) - order.begin();
  }
  Shape atenShape() const {
    Shape shape(order.size());
    for (size_t i = 0; i < order.size(); ++i) shape[static_cast<size_t>(order[i])] = value->shape()[i];
    return shape;
  }
  StoredTensor stored() const { return {value, Layout::ordered(atenShape(), order)}; }
};

LayoutView layoutView(Lowering& lowering, const StoredTensor& data) {
  const std::vector<int> order = lowering.commonOrder({data});
  return {lowering.ordered(data, order), order};
}

/// Elements start, start + step, ... of one dimension, `count` of them.
LayoutView sliced(Lowering& lowering, const LayoutView& data, int64_t dim, int64_t start, int64_t count,
                  int64_t step) {
  return {lowering.emit().sliceEvery(data.value, data.axisOf(dim), start, count, step), data.order};
}

Status defineSlice(Lowering& lowering, const ir::Node& node, const ir::Value* result, int64_t dim,
                   int64_t start, int64_t count, int64_t step = 1) {
  const ir::Value* input = node.operands()[0];
  CARINA_TRY(const StoredTensor data, lowering.movable(input));
  const LayoutView piece = sliced(lowering, layoutView(lowering, data), dim, start, count, step);
  return lowering.defineMoved(result, input, lowering.viewed(piece.stored(), result->shape()));
}

Status lowerSlice(Lowering& lowering, const ir::Node& node) {
  const aten::SliceTensor op = ir::cast<aten::SliceTensor>(&node);
  const int64_t dim = wrapped(op.dim(), op.self()->rank()), extent = op.self()->dim(dim);
  int64_t start = op.start().value_or(0);
  if (start < 0) start += extent;
  start = std::clamp<int64_t>(start, 0, extent);
  const int64_t count = node.result()->dim(dim);
  if (count == 0)
    return fail(Code::NoIntegerForm, "the slice is empty").withRemedy("slice at least one element");
  return defineSlice(lowering, node, node.result(), dim, start, count, op.step());
}

Status lowerSelect(Lowering& lowering, const ir::Node& node) {
  const aten::SelectInt op = ir::cast<aten::SelectInt>(&node);
  const int64_t dim = wrapped(op.dim(), op.self()->rank());
  return defineSlice(lowering, node, node.result(), dim, wrapped(op.index(), op.self()->dim(dim)), 1);
}

Status lowerNarrow(Lowering& lowering, const ir::Node& node) {
  const aten::Narrow op = ir::cast<aten::Narrow>(&node);
  const int64_t dim = wrapped(op.dim(), op.self()->rank());
  return defineSlice(lowering, node, node.result(), dim, wrapped(op.start(), op.self()->dim(dim)),
                     op.length());
}

/// Consecutive pieces, with the sizes of the results (1 if the dimension is dropped).
Status lowerPieces(Lowering& lowering, const ir::Node& node, int64_t dim, bool dropped) {
  int64_t start = 0;
  for (const ir::Value* piece : node.results()) {
    const int64_t count = dropped ? 1 : piece->dim(dim);
    if (!piece->unused()) CARINA_RETURN_IF_ERROR(defineSlice(lowering, node, piece, dim, start, count));
    start += count;
  }
  return {};
}

template <typename Op>
Status lowerSplit(Lowering& lowering, const ir::Node& node) {
  const Op op = ir::cast<Op>(&node);
  return lowerPieces(lowering, node, wrapped(op.dim(), op.self()->rank()),
                     std::is_same_v<Op, aten::UnbindInt>);
}

/// Concatenates the operands (stack: with a new dimension of size 1) along dim.
Status join(Lowering& lowering, const ir::Node& node, std::span<ir::Value* const> tensors, int64_t dim,
            bool stack) {
  std::vector<ir::Value*> operands;
  for (ir::Value* tensor : tensors) {
    if (stack || tensor->rank() != 1 || tensor->dim(0) != 0)
      operands.push_back(tensor);  // legacy: [0] is skipped
  }
  std::vector<StoredTensor> data;
  std::optional<Codes> codes;
  if (lowering.isFloatValue(node.result())) {
    CARINA_TRY(SameCodes same, sameCodes(lowering, operands, node.result()));
    data = std::move(same.data);
    codes = same.codes;
  } else {
    for (const ir::Value* operand : operands) {
      CARINA_TRY(StoredTensor integers, lowering.integers(operand));
      data.push_back(std::move(integers));
    }
  }
  if (stack) {
    for (StoredTensor& piece : data) {
      Shape shape = piece.shape();
      shape.insert(shape.begin() + dim, 1);
      piece = lowering.viewed(piece, shape);
    }
  }
  const std::vector<int> order = lowering.commonOrder(data);
  std::vector<ir::Value*> pieces;
  pieces.reserve(data.size());
  for (const StoredTensor& piece : data) pieces.push_back(lowering.ordered(piece, order));
  const LayoutView result{lowering.emit().concat(pieces, LayoutView{nullptr, order}.axisOf(dim)), order};
  if (codes)
    lowering.define(node.result(),
                    QuantizedValue{result.stored(), {codes->scale}, codes->zeroPoint, false, {}, {}, {}, {}});
  else
    lowering.define(node.result(), result.stored());
  return {};
}

template <typename Op>
Status lowerCat(Lowering& lowering, const ir::Node& node) {
  const Op op = ir::cast<Op>(&node);
  return join(lowering, node, op.tensors(), wrapped(op.dim(), node.result()->rank()),
              std::is_same_v<Op, aten::Stack>);
}

/// The code that represents a real number in moved data; integers represent themselves.
Result<int64_t> codeOf(Lowering& lowering, const ir::Value* value, double number) {
  if (!lowering.isFloatValue(value)) {
    const auto whole = static_cast<int64_t>(std::clamp(number, -0x1p62, 0x1p62));
    if (value->dtype() == DType::Int64) CARINA_RETURN_IF_ERROR(checkInt32(whole, "the number to pad with"));
    return whole;
  }
  CARINA_TRY(const QuantizedValue real, lowering.plainValue(value));
  const DType dtype = real.data.dtype();
  return Codes{real.scale(), real.zeroPoint, integerMin(dtype), integerMax(dtype), dtype}.quantize(number);
}

/// pad: amounts before and after, starting with the last dimension; negative amounts crop.
Status padWith(Lowering& lowering, const ir::Node& node, const ir::Ints& pad, double number) {
  const ir::Value* input = node.operands()[0];
  CARINA_TRY(const StoredTensor data, lowering.movable(input));
  CARINA_TRY(const int64_t code, codeOf(lowering, input, number));
  LayoutView result = layoutView(lowering, data);
  const int64_t rank = input->rank();
  Shape padding(static_cast<size_t>(2 * rank), 0);
  bool grows = false;
  for (size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    const int64_t axis = result.axisOf(rank - 1 - static_cast<int64_t>(i));
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t cutFront = std::max<int64_t>(-before, 0), cutBack = std::max<int64_t>(-after, 0);
    if (cutFront + cutBack > 0) {
      result.value = lowering.emit().sliceAxis(result.value, axis, cutFront,
                                               result.value->dim(axis) - cutFront - cutBack);
    }
    padding[static_cast<size_t>(2 * axis)] = std::max<int64_t>(before, 0);
    padding[static_cast<size_t>(2 * axis + 1)] = std::max<int64_t>(after, 0);
    grows |= before > 0 || after > 0;
  }
  if (grows) result.value = lowering.emit().pad(result.value, padding, code);
  return lowering.defineMoved(node.result(), input, result.stored());
}

/// Mirrored or repeated edges, assembled from slices. Reflection excludes the edge itself.
Status padFromEdges(Lowering& lowering, const ir::Node& node, const ir::Ints& pad, bool reflect) {
  const ir::Value* input = node.operands()[0];
  CARINA_TRY(const StoredTensor data, lowering.movable(input));
  Emitter& emit = lowering.emit();
  LayoutView result = layoutView(lowering, data);
  const int64_t rank = input->rank();
  for (size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    const int64_t axis = result.axisOf(rank - 1 - static_cast<int64_t>(i));
    const int64_t extent = result.value->dim(axis);
    if (pad[2 * i] < 0 || pad[2 * i + 1] < 0)
      return fail(Code::NoIntegerForm, "{} has negative padding", node.opName()).withRemedy("slice instead");
    const auto edge = [&](int64_t count, bool front) {
      if (reflect) {
        return emit.reverse(emit.sliceAxis(result.value, axis, front ? 1 : extent - 1 - count, count), axis);
      }
      Shape multiples(static_cast<size_t>(rank), 1);
      multiples[static_cast<size_t>(axis)] = count;
      return emit.tile(emit.sliceAxis(result.value, axis, front ? 0 : extent - 1, 1), multiples);
    };
    std::vector<ir::Value*> pieces;
    if (pad[2 * i] > 0) pieces.push_back(edge(pad[2 * i], true));
    pieces.push_back(result.value);
    if (pad[2 * i + 1] > 0) pieces.push_back(edge(pad[2 * i + 1], false));
    if (pieces.size() > 1) result.value = emit.concat(pieces, axis);
  }
  return lowering.defineMoved(node.result(), input, result.stored());
}

Status lowerConstantPad(Lowering& lowering, const ir::Node& node) {
  const aten::ConstantPadNd op = ir::cast<aten::ConstantPadNd>(&node);
  return padWith(lowering, node, op.pad(), ir::scalarReal(op.value()));
}

Status lowerPad(Lowering& lowering, const ir::Node& node) {
  const aten::Pad op = ir::cast<aten::Pad>(&node);
  if (op.mode() == "constant") return padWith(lowering, node, op.pad(), op.value().value_or(0));
  if (op.mode() == "reflect" || op.mode() == "replicate")
    return padFromEdges(lowering, node, op.pad(), op.mode() == "reflect");
  return fail(Code::NoIntegerForm, "padding mode {} is not supported on the NPU", op.mode())
      .withRemedy("use constant, reflect or replicate padding");
}

template <typename Op, bool kReflect>
Status lowerEdgePad(Lowering& lowering, const ir::Node& node) {
  return padFromEdges(lowering, node, ir::cast<Op>(&node).padding(), kReflect);
}

Status lowerFlip(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const StoredTensor data, lowering.movable(node.operands()[0]));
  LayoutView result = layoutView(lowering, data);
  const int64_t rank = node.operands()[0]->rank();
  for (int64_t d : ir::cast<aten::Flip>(&node).dims()) {
    result.value = lowering.emit().reverse(result.value, result.axisOf(wrapped(d, rank)));
  }
  return lowering.defineMoved(node.result(), node.operands()[0], result.stored());
}

/// out[(i + shift) mod n] = in[i]: the last `shift` elements come first. Without dims the flattened tensor is
/// rolled.
Status lowerRoll(Lowering& lowering, const ir::Node& node) {
  const aten::Roll op = ir::cast<aten::Roll>(&node);
  CARINA_TRY(StoredTensor data, lowering.movable(op.self()));
  const bool flat = op.dims().empty();
  if (flat) data = lowering.viewed(data, {op.self()->numElements()});
  LayoutView result = layoutView(lowering, data);
  const auto rank = static_cast<int64_t>(result.order.size());
  for (size_t i = 0; i < op.shifts().size(); ++i) {
    const int64_t axis = result.axisOf(flat ? 0 : wrapped(op.dims()[i], rank)),
                  extent = result.value->dim(axis);
    const int64_t shift = ((op.shifts()[i] % extent) + extent) % extent;
    if (shift == 0) continue;
    Emitter& emit = lowering.emit();
    result.value = emit.concat({emit.sliceAxis(result.value, axis, extent - shift, shift),
                                emit.sliceAxis(result.value, axis, 0, extent - shift)},
                               axis);
  }
  return lowering.defineMoved(node.result(), op.self(),
                              lowering.viewed(result.stored(), node.result()->shape()));
}

/// Repeats each element n times in a row: a new dimension after `dim` is repeated, then merged.
Status lowerRepeatInterleave(Lowering& lowering, const ir::Node& node) {
  const aten::RepeatInterleaveSelfInt op = ir::cast<aten::RepeatInterleaveSelfInt>(&node);
  CARINA_TRY(StoredTensor data, lowering.movable(op.self()));
  if (!op.dim()) data = lowering.viewed(data, {op.self()->numElements()});
  Shape shape = data.shape();
  const int64_t dim = op.dim() ? wrapped(*op.dim(), op.self()->rank()) : 0;
  shape.insert(shape.begin() + dim + 1, 1);
  LayoutView result = layoutView(lowering, lowering.viewed(data, shape));
  Shape multiples(shape.size(), 1);
  multiples[static_cast<size_t>(result.axisOf(dim + 1))] = op.repeats();
  result.value = lowering.emit().tile(result.value, multiples);
  return lowering.defineMoved(node.result(), op.self(),
                              lowering.viewed(result.stored(), node.result()->shape()));
}

/// View, permute, view: no data moves until a consumer needs another order.
Status viewPermuteView(Lowering& lowering, const ir::Node& node, const Shape& split,
                       const std::vector<int>& permutation) {
  CARINA_TRY(const StoredTensor data, lowering.movable(node.operands()[0]));
  StoredTensor moved = lowering.viewed(data, split);
  moved.layout = moved.layout.permuted(permutation);
  return lowering.defineMoved(node.result(), node.operands()[0],
                              lowering.viewed(moved, node.result()->shape()));
}

Status lowerPixelShuffle(Lowering& lowering, const ir::Node& node) {
  const int64_t r = ir::cast<aten::PixelShuffle>(&node).upscaleFactor();
  const Shape& s = node.operands()[0]->shape();
  const size_t rank = s.size();
  const int64_t batch = numElements(Shape(s.begin(), s.end() - 3));
  return viewPermuteView(lowering, node, {batch, s[rank - 3] / (r * r), r, r, s[rank - 2], s[rank - 1]},
                         {0, 1, 4, 2, 5, 3});
}

Status lowerPixelUnshuffle(Lowering& lowering, const ir::Node& node) {
  const int64_t r = ir::cast<aten::PixelUnshuffle>(&node).downscaleFactor();
  const Shape& s = node.operands()[0]->shape();
  const size_t rank = s.size();
  const int64_t batch = numElements(Shape(s.begin(), s.end() - 3));
  return viewPermuteView(lowering, node, {batch, s[rank - 3], s[rank - 2] / r, r, s[rank - 1] / r, r},
                         {0, 1, 3, 5, 2, 4});
}

Status lowerChannelShuffle(Lowering& lowering, const ir::Node& node) {
  const int64_t groups = ir::cast<aten::ChannelShuffle>(&node).groups();
  const Shape& s = node.operands()[0]->shape();
  const int64_t rest = numElements(Shape(s.begin() + 2, s.end()));
  return viewPermuteView(lowering, node, {s[0], groups, s[1] / groups, rest}, {0, 2, 1, 3});
}

/// self with [start, start + count) of one dimension replaced by src, assembled from src and the slices on
/// both sides.
Status replaceSlice(Lowering& lowering, const ir::Node& node, int64_t dim, int64_t start, int64_t count) {
  const ir::Value* self = node.operands()[0];
  std::vector<StoredTensor> data;
  std::optional<Codes> codes;
  if (lowering.isFloatValue(self)) {
    CARINA_TRY(SameCodes same, sameCodes(lowering, std::span(node.operands()).subspan(0, 2), node.result()));
    data = std::move(same.data);
    codes = same.codes;
  } else {
    for (size_t i = 0; i < 2; ++i) {
      CARINA_TRY(StoredTensor integers, lowering.integers(node.operands()[i]));
      data.push_back(std::move(integers));
    }
  }
  Shape sourceShape = self->shape();
  sourceShape[static_cast<size_t>(dim)] = count;
  data[1] = lowering.viewed(data[1], sourceShape);
  const std::vector<int> order = lowering.commonOrder(data);
  const LayoutView whole{lowering.ordered(data[0], order), order};
  const int64_t axis = whole.axisOf(dim), extent = self->dim(dim);
  std::vector<ir::Value*> pieces;
  if (start > 0) pieces.push_back(lowering.emit().sliceAxis(whole.value, axis, 0, start));
  pieces.push_back(lowering.ordered(data[1], order));
  if (start + count < extent) {
    pieces.push_back(lowering.emit().sliceAxis(whole.value, axis, start + count, extent - start - count));
  }
  const LayoutView result{lowering.emit().concat(pieces, axis), order};
  if (codes)
    lowering.define(node.result(),
                    QuantizedValue{result.stored(), {codes->scale}, codes->zeroPoint, false, {}, {}, {}, {}});
  else
    lowering.define(node.result(), result.stored());
  return {};
}

Status lowerSelectScatter(Lowering& lowering, const ir::Node& node) {
  const aten::SelectScatter op = ir::cast<aten::SelectScatter>(&node);
  const int64_t dim = wrapped(op.dim(), op.self()->rank());
  return replaceSlice(lowering, node, dim, wrapped(op.index(), op.self()->dim(dim)), 1);
}

Status lowerSliceScatter(Lowering& lowering, const ir::Node& node) {
  const aten::SliceScatter op = ir::cast<aten::SliceScatter>(&node);
  if (op.step() != 1)
    return fail(Code::NoIntegerForm, "slice_scatter with step {} is not supported on the NPU", op.step())
        .withRemedy("use step 1");
  const int64_t dim = wrapped(op.dim(), op.self()->rank()), extent = op.self()->dim(dim);
  int64_t start = op.start().value_or(0);
  if (start < 0) start += extent;
  return replaceSlice(lowering, node, dim, std::clamp<int64_t>(start, 0, extent), op.src()->dim(dim));
}

}  // namespace

void addMoveRules(Rules& rules) {
  rules[&aten::Cat::def()] = lowerCat<aten::Cat>;
  rules[&aten::Stack::def()] = lowerCat<aten::Stack>;
  rules[&aten::SliceTensor::def()] = lowerSlice;
  rules[&aten::SelectInt::def()] = lowerSelect;
  rules[&aten::Narrow::def()] = lowerNarrow;
  rules[&aten::SplitTensor::def()] = lowerSplit<aten::SplitTensor>;
  rules[&aten::SplitSizes::def()] = lowerSplit<aten::SplitSizes>;
  rules[&aten::SplitWithSizes::def()] = lowerSplit<aten::SplitWithSizes>;
  rules[&aten::Chunk::def()] = lowerSplit<aten::Chunk>;
  rules[&aten::UnbindInt::def()] = lowerSplit<aten::UnbindInt>;
  rules[&aten::TensorSplitSections::def()] = lowerSplit<aten::TensorSplitSections>;
  rules[&aten::TensorSplitIndices::def()] = lowerSplit<aten::TensorSplitIndices>;
  rules[&aten::ConstantPadNd::def()] = lowerConstantPad;
  rules[&aten::Pad::def()] = lowerPad;
  rules[&aten::ReflectionPad1d::def()] = lowerEdgePad<aten::ReflectionPad1d, true>;
  rules[&aten::ReflectionPad2d::def()] = lowerEdgePad<aten::ReflectionPad2d, true>;
  rules[&aten::ReflectionPad3d::def()] = lowerEdgePad<aten::ReflectionPad3d, true>;
  rules[&aten::ReplicationPad1d::def()] = lowerEdgePad<aten::ReplicationPad1d, false>;
  rules[&aten::ReplicationPad2d::def()] = lowerEdgePad<aten::ReplicationPad2d, false>;
  rules[&aten::ReplicationPad3d::def()] = lowerEdgePad<aten::ReplicationPad3d, false>;
  rules[&aten::Flip::def()] = lowerFlip;
  rules[&aten::Roll::def()] = lowerRoll;
  rules[&aten::RepeatInterleaveSelfInt::def()] = lowerRepeatInterleave;
  rules[&aten::PixelShuffle::def()] = lowerPixelShuffle;
  rules[&aten::PixelUnshuffle::def()] = lowerPixelUnshuffle;
  rules[&aten::ChannelShuffle::def()] = lowerChannelShuffle;
  rules[&aten::SelectScatter::def()] = lowerSelectScatter;
  rules[&aten::SliceScatter::def()] = lowerSliceScatter;
}

}  // namespace carina::lower
