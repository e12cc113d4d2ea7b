// SPDX-License-Identifier: Apache-2.0
// Operators that move elements: codes do not change.
#include <algorithm>
#include <cmath>

#include "lower_tfl/lowering.hpp"
#include "tfl/geometry.hpp"

namespace carina::lower_tfl {
namespace {

Status lowerReshape(Lowering& lowering, const ir::Node& node) {
  ir::Value* value = lowering.emit().reshape(lowering.get(node.operand(0)), node.result()->shape());
  lowering.define(node.result(), value);
  return {};
}

/// Rescales uint8 in float32, like the kernel of CONCATENATION.
ir::Value* scaledBytes(Lowering& lowering, const ir::Value* value, const Quantum& from, const Quantum& to) {
  constexpr int64_t kHalf = 128;
  const float scale = from.single() * (1 / to.single());
  const float bias = -static_cast<float>(from.zero + kHalf) * scale;
  Tensor table = Tensor::uninitialized(DType::Int8, {2 * kHalf});
  for (int64_t i = 0; i < 2 * kHalf; ++i) {
    const auto code = static_cast<int64_t>(std::round(static_cast<float>(i) * scale + bias)) + to.zero;
    table.setIntegerAt(i, std::clamp<int64_t>(code, -kHalf, kHalf - 1));
  }
  return lowering.emit().table(lowering.get(value), std::move(table));
}

/// Converts operands of a concatenation to the result's quantization.
Result<ir::Value*> requantized(Lowering& lowering, const ir::Value* value, const ir::Value* output) {
  if (!value->quantization || !output->quantization || *value->quantization == *output->quantization ||
      dtypeSize(value->dtype()) > 2)
    return lowering.get(value);
  CARINA_TRY(const Quantum from, lowering.codesOf(value, "part"));
  CARINA_TRY(const Quantum to, lowering.codesOf(output, "result"));
  if (from.zero == to.zero && from.single() == to.single()) return lowering.get(value);
  if (lowering.isUnsigned(value)) return scaledBytes(lowering, value, from, to);
  return lowering.rescale(lowering.get(value), output->dtype(), from.zero, to.zero,
                          quantizeMultiplier(from.scale / to.scale));
}

Status lowerConcatenation(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::Concatenation>(&node);
  CARINA_TRY(const int64_t axis, tfl::axisOf(op.axis(), op.output()->rank()));
  std::vector<ir::Value*> parts;
  for (const ir::Value* value : op.values()) {
    CARINA_TRY(ir::Value * part, requantized(lowering, value, op.output()));
    parts.push_back(part);
  }
  ir::Value* joined = lowering.emit().concat(parts, axis);
  if (op.fusedActivationFunction() != tfl::Activation::NONE) {
    CARINA_TRY(const CodeRange range, lowering.activation(op.fusedActivationFunction(), op.output()));
    joined = lowering.clamped(joined, range);
  }
  lowering.define(op.output(), joined);
  return {};
}

Status lowerPack(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::Pack>(&node);
  CARINA_TRY(const int64_t axis, tfl::axisOf(op.axis(), op.output()->rank()));
  std::vector<ir::Value*> parts;
  for (const ir::Value* value : op.values()) {
    CARINA_TRY(ir::Value * part, requantized(lowering, value, op.output()));
    Shape shape = part->shape();
    shape.insert(shape.begin() + axis, 1);
    parts.push_back(lowering.emit().reshape(part, shape));
  }
  lowering.define(op.output(), lowering.emit().concat(parts, axis));
  return {};
}

/// Consecutive parts along an axis, each in the shape of its result.
void defineParts(Lowering& lowering, const ir::Node& node, const ir::Value* input, int64_t axis,
                 const ir::Ints& sizes) {
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    ir::Value* part = lowering.emit().sliceAxis(lowering.get(input), axis, start, sizes[i]);
    lowering.define(node.result(i), lowering.emit().reshape(part, node.result(i)->shape()));
    start += sizes[i];
  }
}

Status lowerUnpack(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::Unpack>(&node);
  CARINA_TRY(const int64_t axis, tfl::axisOf(op.axis(), op.input()->rank()));
  defineParts(lowering, node, op.input(), axis, ir::Ints(node.results().size(), 1));
  return {};
}

Status lowerSplit(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::Split>(&node);
  CARINA_TRY(const int64_t axis, tfl::axisOf(op.axis()->constant().integerAt(0), op.input()->rank()));
  const size_t parts = node.results().size();
  defineParts(lowering, node, op.input(), axis,
              ir::Ints(parts, op.input()->dim(axis) / static_cast<int64_t>(parts)));
  return {};
}

Status lowerSplitV(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::dynCast<tfl::SplitV>(&node);
  CARINA_TRY(const int64_t axis, tfl::axisOf(op.axis()->constant().integerAt(0), op.input()->rank()));
  CARINA_TRY(const ir::Ints sizes, tfl::splitSizes(op));
  defineParts(lowering, node, op.input(), axis, sizes);
  return {};
}

Status lowerSlice(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const ir::Ints begin, tfl::constantInts(node.operand(1), "begins"));
  lowering.define(node.result(),
                  lowering.emit().slice(lowering.get(node.operand(0)), begin, node.result()->shape()));
  return {};
}

Status lowerStridedSlice(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::dynCast<tfl::StridedSlice>(&node);
  CARINA_TRY(const tfl::StridedRanges ranges, tfl::stridedRanges(op));
  Emitter& emit = lowering.emit();
  ir::Value* value = lowering.get(op.input());
  for (size_t i = 0; i < ranges.ranges.size(); ++i) {
    const tfl::Range& range = ranges.ranges[i];
    const auto axis = static_cast<int64_t>(i);
    if (range.step < 0) {
      // Backwards: reverses the elements, then slices forwards.
      const int64_t first = value->dim(axis) - 1 - range.start;
      value = emit.sliceEvery(emit.reverse(value, axis), axis, first, range.count, -range.step);
    } else {
      value = emit.sliceEvery(value, axis, range.start, range.count, range.step);
    }
  }
  lowering.define(op.output(), emit.reshape(value, op.output()->shape()));
  return {};
}

/// Pads with the code of real 0 if the file specifies no value.
Status lowerPad(Lowering& lowering, const ir::Node& node) {
  const ir::Value *input = node.operand(0), *output = node.result();
  CARINA_TRY(const ir::Ints paddings, tfl::paddingsOf(node.operand(1), input->shape()));
  int64_t value = 0;
  if (output->quantization) {
    CARINA_TRY(const Quantum to, lowering.quantumOf(output));
    value = to.zero;
  }
  if (ir::isa<tfl::Padv2>(&node)) value = node.operand(2)->constant().integerAt(0);
  const bool none = std::all_of(paddings.begin(), paddings.end(), [](int64_t p) { return p == 0; });
  ir::Value* padded = lowering.get(input);
  lowering.define(output, none ? padded : lowering.emit().pad(padded, paddings, value));
  return {};
}

Status lowerMirrorPad(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::MirrorPad>(&node);
  CARINA_TRY(const ir::Ints paddings, tfl::paddingsOf(op.paddings(), op.input()->shape()));
  const int64_t kept = op.mode() == tfl::MirrorMode::REFLECT ? 1 : 0;
  Emitter& emit = lowering.emit();
  ir::Value* value = lowering.get(op.input());
  for (int64_t axis = 0; axis < op.input()->rank(); ++axis) {
    const int64_t before = paddings[static_cast<size_t>(2 * axis)];
    const int64_t after = paddings[static_cast<size_t>(2 * axis + 1)], size = value->dim(axis);
    std::vector<ir::Value*> parts;
    const auto mirrored = [&](int64_t start, int64_t count) {
      if (count > 0) parts.push_back(emit.reverse(emit.sliceAxis(value, axis, start, count), axis));
    };
    mirrored(kept, before);
    parts.push_back(value);
    mirrored(size - kept - after, after);
    value = emit.concat(parts, axis);
  }
  lowering.define(op.output(), value);
  return {};
}

Status lowerTranspose(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const ir::Ints permutation, tfl::constantInts(node.operand(1), "permutation"));
  lowering.define(node.result(), lowering.emit().transpose(lowering.get(node.operand(0)),
                                                           {permutation.begin(), permutation.end()}));
  return {};
}

Status lowerTile(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const ir::Ints multiples, tfl::constantInts(node.operand(1), "multiples"));
  const bool once = std::all_of(multiples.begin(), multiples.end(), [](int64_t m) { return m == 1; });
  ir::Value* value = lowering.get(node.operand(0));
  lowering.define(node.result(), once ? value : lowering.emit().tile(value, multiples));
  return {};
}

Status lowerBroadcastTo(Lowering& lowering, const ir::Node& node) {
  const Shape& shape = node.result()->shape();
  ir::Value* value = lowering.ranked(node.operand(0), node.result()->rank());
  Shape multiples(shape.size(), 1);
  for (size_t i = 0; i < shape.size(); ++i) multiples[i] = shape[i] / value->shape()[i];
  const bool once = value->shape() == shape;
  lowering.define(node.result(), once ? value : lowering.emit().tile(value, multiples));
  return {};
}

Status lowerReverse(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const ir::Ints given, tfl::constantInts(node.operand(1), "axes"));
  CARINA_TRY(const ir::Ints axes, tfl::axesOf(given, node.operand(0)->rank()));
  ir::Value* value = lowering.get(node.operand(0));
  for (int64_t axis : axes) value = lowering.emit().reverse(value, axis);
  lowering.define(node.result(), value);
  return {};
}

/// Rows of a table [1, K, C] for each element before the axis.
Status lowerGather(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::Gather>(&node);
  CARINA_TRY(const int64_t axis, tfl::axisOf(op.axis(), op.input()->rank()));
  const Shape& shape = op.input()->shape();
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= shape[static_cast<size_t>(i)];
  for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  if (op.input()->dtype() == DType::Bool) return fail(Code::NoIntegerForm, "it gathers bool values");
  const int64_t rows = shape[static_cast<size_t>(axis)], count = op.indices()->numElements();
  if (op.indices()->isConstant()) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = op.indices()->constant().integerAt(i);
      if (index < 0 || index >= rows)
        return fail(Code::NoIntegerForm, "index {} is out of range for {} rows", index, rows);
    }
  }
  Emitter& emit = lowering.emit();
  ir::Value* table = emit.reshape(lowering.get(op.input()), {outer, rows, inner});
  ir::Value* indices = emit.reshape(lowering.get(op.indices()), {1, count});
  if (outer > 1) indices = emit.tile(indices, {outer, 1});
  lowering.define(op.output(), emit.reshape(emit.gather(table, indices), op.output()->shape()));
  return {};
}

Status lowerDepthToSpace(Lowering& lowering, const ir::Node& node) {
  const Shape &in = node.operand(0)->shape(), &out = node.result()->shape();
  const int64_t b = node.attributeAs<int64_t>(0);
  Emitter& emit = lowering.emit();
  ir::Value* value = emit.reshape(lowering.get(node.operand(0)), {in[0] * in[1], in[2], b, b * out[3]});
  lowering.define(node.result(), emit.reshape(emit.transpose(value, {0, 2, 1, 3}), out));
  return {};
}

Status lowerSpaceToDepth(Lowering& lowering, const ir::Node& node) {
  const Shape &in = node.operand(0)->shape(), &out = node.result()->shape();
  const int64_t b = node.attributeAs<int64_t>(0);
  Emitter& emit = lowering.emit();
  ir::Value* value = emit.reshape(lowering.get(node.operand(0)), {in[0] * out[1], b, out[2], b * in[3]});
  lowering.define(node.result(), emit.reshape(emit.transpose(value, {0, 2, 1, 3}), out));
  return {};
}

Status lowerSpaceToBatch(Lowering& lowering, const ir::Node& node) {
  const ir::Value* input = node.operand(0);
  CARINA_TRY(const ir::Ints block, tfl::constantInts(node.operand(1), "blocks"));
  CARINA_TRY(const ir::Ints edges, tfl::constantInts(node.operand(2), "edges"));
  int64_t zero = 0;
  if (input->quantization) {
    CARINA_TRY(const Quantum from, lowering.quantumOf(input));
    zero = from.zero;
  }
  Emitter& emit = lowering.emit();
  const Shape& out = node.result()->shape();
  ir::Value* value =
      emit.pad(lowering.get(input), {0, 0, edges[0], edges[1], edges[2], edges[3], 0, 0}, zero);
  value = emit.reshape(value, {input->dim(0), out[1], block[0], out[2], block[1], out[3]});
  lowering.define(node.result(), emit.reshape(emit.transpose(value, {2, 4, 0, 1, 3, 5}), out));
  return {};
}

Status lowerBatchToSpace(Lowering& lowering, const ir::Node& node) {
  const Shape &in = node.operand(0)->shape(), &out = node.result()->shape();
  CARINA_TRY(const ir::Ints block, tfl::constantInts(node.operand(1), "blocks"));
  CARINA_TRY(const ir::Ints edges, tfl::constantInts(node.operand(2), "edges"));
  Emitter& emit = lowering.emit();
  ir::Value* value =
      emit.reshape(lowering.get(node.operand(0)), {block[0], block[1], out[0], in[1], in[2], in[3]});
  value = emit.transpose(value, {2, 3, 0, 4, 1, 5});
  value = emit.reshape(value, {out[0], in[1] * block[0], in[2] * block[1], in[3]});
  lowering.define(node.result(), emit.slice(value, {0, edges[0], edges[2], 0}, out));
  return {};
}

}  // namespace

void addMoveRules(Rules& rules) {
  rules[&tfl::Reshape::def()] = lowerReshape;
  rules[&tfl::Squeeze::def()] = lowerReshape;
  rules[&tfl::ExpandDims::def()] = lowerReshape;
  rules[&tfl::Concatenation::def()] = lowerConcatenation;
  rules[&tfl::Pack::def()] = lowerPack;
  rules[&tfl::Unpack::def()] = lowerUnpack;
  rules[&tfl::Split::def()] = lowerSplit;
  rules[&tfl::SplitV::def()] = lowerSplitV;
  rules[&tfl::Slice::def()] = lowerSlice;
  rules[&tfl::StridedSlice::def()] = lowerStridedSlice;
  rules[&tfl::Pad::def()] = lowerPad;
  rules[&tfl::Padv2::def()] = lowerPad;
  rules[&tfl::MirrorPad::def()] = lowerMirrorPad;
  rules[&tfl::Transpose::def()] = lowerTranspose;
  rules[&tfl::Tile::def()] = lowerTile;
  rules[&tfl::BroadcastTo::def()] = lowerBroadcastTo;
  rules[&tfl::ReverseV2::def()] = lowerReverse;
  rules[&tfl::Gather::def()] = lowerGather;
  rules[&tfl::DepthToSpace::def()] = lowerDepthToSpace;
  rules[&tfl::SpaceToDepth::def()] = lowerSpaceToDepth;
  rules[&tfl::SpaceToBatchNd::def()] = lowerSpaceToBatch;
  rules[&tfl::BatchToSpaceNd::def()] = lowerBatchToSpace;
}

}  // namespace carina::lower_tfl
