// SPDX-License-Identifier: Apache-2.0
// Inference of operators that move data, and of reductions.
#include "tosa/infer.hpp"
#include "tosa/node_checker.hpp"
#include "tosa/tosa.hpp"

namespace carina::tosa::infer {
namespace {

Status axisInRange(int64_t axis, int64_t rank) {
  if (axis < 0) return broken("AxisSmallerZero", "axis {} is negative", axis);
  if (axis >= rank) return broken("AxisLargerRank", "axis {} is not below rank {}", axis, rank);
  return {};
}

}  // namespace

Types reduce(const ir::Node& node) {
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const int64_t axis = node.attributeAs<int64_t>(0);  // the first attribute of every reduction
  Shape shape = node.operand(0)->shape();
  CARINA_RETURN_IF_ERROR(axisInRange(axis, static_cast<int64_t>(shape.size())));
  shape[static_cast<size_t>(axis)] = 1;
  const Shape* recorded = checker.recordedShape();
  const bool axisIsWrong =
      recorded && recorded->size() == shape.size() && (*recorded)[static_cast<size_t>(axis)] != 1;
  return checker.results({std::move(shape)}, axisIsWrong ? "ShapeOfAxisNotOne" : "DimensionMismatch");
}

Types concat(const ir::Node& node) {
  const auto op = ir::cast<Concat>(&node);
  if (op.input1().empty()) return broken("ConcatNoInputList", "there is nothing to concatenate");
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  Shape shape = op.input1().front()->shape();
  CARINA_RETURN_IF_ERROR(axisInRange(op.axis(), static_cast<int64_t>(shape.size())));
  const auto axis = static_cast<size_t>(op.axis());
  shape[axis] = 0;
  for (const ir::Value* value : op.input1()) {
    if (value->shape().size() != shape.size()) {
      return broken("ConcatInputRankMismatch", "operands have ranks {} and {}", shape.size(), value->rank());
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i != axis && value->shape()[i] != shape[i]) {
        return broken("ConcatInputDimMismatch", "{} differs from {} outside axis {}",
                      shapeText(value->shape()), shapeText(op.input1().front()->shape()), axis);
      }
    }
    const auto sum = checkedAdd(shape[axis], value->shape()[axis]);
    if (!sum) return broken("MaxDimExceeded", "the concatenated axis is too large");
    shape[axis] = *sum;
  }
  return checker.results({std::move(shape)}, "ConcatShapeSumMismatch");
}

Types pad(const ir::Node& node) {
  const auto op = ir::cast<Pad>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  if (op.padConst()->shape() != Shape{1}) {
    return broken("PadConstNotSingleElement", "pad_const has shape {}, expected [1]",
                  shapeText(op.padConst()->shape()));
  }
  const auto padding = shapeValues(op.padding());
  Shape shape = op.input1()->shape();
  if (padding.size() != 2 * shape.size()) {
    return broken("PaddingLengthMismatch", "padding has {} entries for rank {}", padding.size(),
                  shape.size());
  }
  for (size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] < 0) return broken("PadSmallerZero", "padding {} is negative", padding[i]);
    const auto sum = checkedAdd(shape[i / 2], padding[i]);
    if (!sum) return broken("MaxDimExceeded", "the padded size is too large");
    shape[i / 2] = *sum;
  }
  return checker.results({std::move(shape)}, "PadOutputShapeMismatch");
}

Types reshape(const ir::Node& node) {
  const auto op = ir::cast<Reshape>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const auto values = shapeValues(op.shape());
  Shape shape(values.begin(), values.end());
  for (int64_t size : shape) {
    if (size < 1) return broken("DimensionSmallerOne", "the new shape is {}", shapeText(shape));
  }
  const auto count = checkedNumElements(shape);
  if (!count || *count != op.input1()->numElements()) {
    return broken("TensorSizeInputOutputMismatch", "{} and {} have different numbers of elements",
                  shapeText(shape), shapeText(op.input1()->shape()));
  }
  if (const Shape* recorded = checker.recordedShape(); recorded && checkedNumElements(*recorded) != count) {
    return broken("TensorSizeInputOutputMismatch", "the result {} and {} have different numbers of elements",
                  shapeText(*recorded), shapeText(op.input1()->shape()));
  }
  return checker.results({std::move(shape)});
}

Types reverse(const ir::Node& node) {
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  CARINA_RETURN_IF_ERROR(axisInRange(node.attributeAs<int64_t>(0), node.operand(0)->rank()));
  return checker.results({node.operand(0)->shape()});
}

Types slice(const ir::Node& node) {
  const auto op = ir::cast<Slice>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const auto start = shapeValues(op.start()), size = shapeValues(op.size());
  const Shape& input = op.input1()->shape();
  if (start.size() != input.size() || size.size() != input.size()) {
    return broken("InputSizeStartLengthMismatch", "start and size have {} and {} entries for rank {}",
                  start.size(), size.size(), input.size());
  }
  for (size_t i = 0; i < input.size(); ++i) {
    if (start[i] < 0) return broken("StartSmallerZero", "start {} is negative", start[i]);
    if (size[i] <= 0) return broken("SizeSmallerEqualZero", "size {} is not positive", size[i]);
    if (size[i] > input[i] || start[i] > input[i] - size[i]) {
      return broken("StartSizeOutsideBounds", "{} elements from {} exceed a dimension of size {}", size[i],
                    start[i], input[i]);
    }
  }
  return checker.results({Shape(size.begin(), size.end())}, "SizeOutputShapeMismatch");
}

Types tile(const ir::Node& node) {
  const auto op = ir::cast<Tile>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const auto multiples = shapeValues(op.multiples());
  Shape shape = op.input1()->shape();
  if (multiples.size() != shape.size()) {
    return broken("RankMismatch", "multiples has {} entries for rank {}", multiples.size(), shape.size());
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto size = checkedMul(shape[i], multiples[i]);
    if (multiples[i] < 1 || !size)
      return broken("MultiplesSmallerOne", "multiple {} cannot be applied", multiples[i]);
    shape[i] = *size;
  }
  return checker.results({std::move(shape)}, "TileMultiplesOutputShapeMismatch");
}

Types transpose(const ir::Node& node) {
  const auto op = ir::cast<Transpose>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const Shape& input = op.input1()->shape();
  const ir::Ints& perms = op.perms();
  if (perms.size() != input.size()) {
    return broken("RankMismatch", "perms has {} entries for rank {}", perms.size(), input.size());
  }
  std::vector<bool> used(input.size(), false);
  Shape shape;
  for (int64_t perm : perms) {
    if (perm < 0 || perm >= op.input1()->rank()) {
      return broken("IndexOutsideBounds", "perms entry {} is outside rank {}", perm, input.size());
    }
    if (used[static_cast<size_t>(perm)]) return broken("IndexUsedTwice", "perms entry {} is repeated", perm);
    used[static_cast<size_t>(perm)] = true;
    shape.push_back(input[static_cast<size_t>(perm)]);
  }
  return checker.results({std::move(shape)}, "TransposePermsOutputShapeMismatch");
}

Types gather(const ir::Node& node) {
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const Shape &values = node.operand(0)->shape(), &indices = node.operand(1)->shape();
  if (values[0] != indices[0])
    return broken("BatchMismatch", "values have {} batches, indices {}", values[0], indices[0]);
  return checker.results({{values[0], indices[1], values[2]}});
}

Types scatter(const ir::Node& node) {
  const auto op = ir::cast<Scatter>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const Shape &values = op.valuesIn()->shape(), &indices = op.indices()->shape(),
              &input = op.input()->shape();
  if (values[0] != indices[0] || values[0] != input[0]) {
    return broken("BatchMismatch", "batches are {}, {} and {}", values[0], indices[0], input[0]);
  }
  if (indices[1] != input[1])
    return broken("DimensionMismatch", "{} indices for {} rows", indices[1], input[1]);
  if (values[2] != input[2]) return broken("ChannelMismatch", "channels are {} and {}", values[2], input[2]);
  if (values[1] < input[1])
    return broken("DimensionMismatch", "{} rows cannot be written at {} different indices", values[1],
                  input[1]);
  return checker.results({values});
}

}  // namespace carina::tosa::infer
