// SPDX-License-Identifier: Apache-2.0
// Checks of operators that move elements.
#include <algorithm>
#include <numeric>

#include "tfl/check.hpp"
#include "tfl/geometry.hpp"
#include "tfl/results.hpp"

namespace carina::tfl::check {

namespace {

Status keepsType(const ir::Node& node, size_t operand = 0) {
  for (const ir::Value* result : node.results()) {
    if (result->dtype() != node.operand(operand)->dtype())
      return fail(Code::InvalidOperator, "the result's type changes from {} to {}",
                  dtypeName(node.operand(operand)->dtype()), dtypeName(result->dtype()));
  }
  return {};
}

}  // namespace

Status sameCount(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  if (node.operand(0)->numElements() == node.result()->numElements()) return {};
  return fail(Code::InvalidOperator, "{} cannot become {}, which has a different number of elements",
              shapeText(node.operand(0)->shape()), shapeText(node.result()->shape()));
}

Status concatenation(const ir::Node& node) {
  const auto values = node.operandGroup(0);
  if (values.empty()) return fail(Code::InvalidOperator, "expected at least one tensor");
  CARINA_RETURN_IF_ERROR(keepsType(node));
  CARINA_TRY(const int64_t axis,
             axisOf(Concatenation(const_cast<ir::Node*>(&node)).axis(), values[0]->rank()));
  Shape shape = values[0]->shape();
  int64_t& size = shape[static_cast<size_t>(axis)];
  size = 0;
  for (const ir::Value* value : values) {
    Shape other = value->shape();
    if (value->dtype() != values[0]->dtype() || other.size() != shape.size())
      return fail(Code::InvalidOperator, "{} cannot be joined to {}", ir::typeText(value->type),
                  ir::typeText(values[0]->type));
    size += other[static_cast<size_t>(axis)];
    other[static_cast<size_t>(axis)] = size;
    if (other != shape)
      return fail(Code::InvalidOperator, "{} cannot be joined to {}", ir::typeText(value->type),
                  ir::typeText(values[0]->type));
  }
  return resultShape(node, shape);
}

Status pack(const ir::Node& node) {
  const auto values = node.operandGroup(0);
  if (values.empty()) return fail(Code::InvalidOperator, "expected at least one tensor");
  CARINA_RETURN_IF_ERROR(keepsType(node));
  CARINA_TRY(const int64_t axis, axisOf(Pack(const_cast<ir::Node*>(&node)).axis(), values[0]->rank() + 1));
  for (const ir::Value* value : values) {
    if (value->type != values[0]->type)
      return fail(Code::InvalidOperator, "{} cannot be joined to {}", ir::typeText(value->type),
                  ir::typeText(values[0]->type));
  }
  Shape shape = values[0]->shape();
  shape.insert(shape.begin() + axis, static_cast<int64_t>(values.size()));
  return resultShape(node, shape);
}

Status unpack(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  const ir::Value* input = node.operand(0);
  CARINA_TRY(const int64_t axis, axisOf(Unpack(const_cast<ir::Node*>(&node)).axis(), input->rank()));
  CARINA_RETURN_IF_ERROR(resultCount(node, static_cast<size_t>(input->dim(axis))));
  Shape shape = input->shape();
  shape.erase(shape.begin() + axis);
  for (size_t i = 0; i < node.results().size(); ++i) CARINA_RETURN_IF_ERROR(resultShape(node, shape, i));
  return {};
}

Status split(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node, 1));
  const ir::Value* input = node.operand(1);
  CARINA_TRY(const ir::Ints axes, constantInts(node.operand(0), "axes"));
  if (axes.size() != 1) return fail(Code::InvalidOperator, "expected one axis to split, got {}", axes.size());
  CARINA_TRY(const int64_t axis, axisOf(axes[0], input->rank()));
  const auto parts = static_cast<int64_t>(node.results().size());
  if (parts == 0 || input->dim(axis) % parts != 0)
    return fail(Code::InvalidOperator, "{} elements cannot be split into {} equal parts", input->dim(axis),
                parts);
  Shape shape = input->shape();
  shape[static_cast<size_t>(axis)] /= parts;
  for (size_t i = 0; i < node.results().size(); ++i) CARINA_RETURN_IF_ERROR(resultShape(node, shape, i));
  return {};
}

Status splitV(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  const auto op = ir::dynCast<SplitV>(&node);
  CARINA_TRY(const ir::Ints sizes, splitSizes(op));
  CARINA_RETURN_IF_ERROR(resultCount(node, sizes.size()));
  CARINA_TRY(const int64_t axis, axisOf(op.axis()->constant().integerAt(0), op.input()->rank()));
  Shape shape = op.input()->shape();
  for (size_t i = 0; i < sizes.size(); ++i) {
    shape[static_cast<size_t>(axis)] = sizes[i];
    CARINA_RETURN_IF_ERROR(resultShape(node, shape, i));
  }
  return {};
}

Status slice(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  const Shape& input = node.operand(0)->shape();
  CARINA_TRY(const ir::Ints begin, constantInts(node.operand(1), "begins"));
  CARINA_TRY(ir::Ints size, constantInts(node.operand(2), "sizes"));
  if (begin.size() != input.size() || size.size() != input.size())
    return fail(Code::InvalidOperator, "{} begins and {} sizes do not match {} dimensions", begin.size(),
                size.size(), input.size());
  for (size_t i = 0; i < input.size(); ++i) {
    if (size[i] == -1) size[i] = input[i] - begin[i];
    if (begin[i] < 0 || size[i] < 1 || begin[i] + size[i] > input[i])
      return fail(Code::InvalidOperator, "elements {} to {} are out of range for a dimension of size {}",
                  begin[i], begin[i] + size[i], input[i]);
  }
  return resultShape(node, size);
}

Status stridedSlice(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  CARINA_TRY(const StridedRanges ranges, stridedRanges(ir::dynCast<StridedSlice>(&node)));
  return resultShape(node, ranges.shape);
}

Status pad(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  Shape shape = node.operand(0)->shape();
  CARINA_TRY(const ir::Ints paddings, paddingsOf(node.operand(1), shape));
  if (ir::isa<Padv2>(&node)) {
    const ir::Value* value = node.operand(2);
    if (!value->isConstant() || value->numElements() != 1 || value->dtype() != node.operand(0)->dtype())
      return fail(Code::InvalidOperator, "the padding value is {}, not a constant",
                  ir::typeText(value->type));
  }
  for (size_t i = 0; i < shape.size(); ++i) shape[i] += paddings[2 * i] + paddings[2 * i + 1];
  return resultShape(node, shape);
}

Status mirrorPad(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  Shape shape = node.operand(0)->shape();
  CARINA_TRY(const ir::Ints paddings, paddingsOf(node.operand(1), shape));
  const int64_t kept = MirrorPad(const_cast<ir::Node*>(&node)).mode() == MirrorMode::REFLECT ? 1 : 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (std::max(paddings[2 * i], paddings[2 * i + 1]) > shape[i] - kept)
      return fail(Code::InvalidOperator, "a mirrored border of {} exceeds {} elements",
                  std::max(paddings[2 * i], paddings[2 * i + 1]), shape[i]);
    shape[i] += paddings[2 * i] + paddings[2 * i + 1];
  }
  return resultShape(node, shape);
}

Status transpose(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  const Shape& input = node.operand(0)->shape();
  CARINA_TRY(const ir::Ints permutation, constantInts(node.operand(1), "permutation"));
  ir::Ints sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  ir::Ints all(input.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  if (sorted != all)
    return fail(Code::InvalidOperator, "{} is not a permutation of {} dimensions", shapeText(permutation),
                input.size());
  Shape shape;
  for (const int64_t axis : permutation) shape.push_back(input[static_cast<size_t>(axis)]);
  return resultShape(node, shape);
}

Status tile(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  Shape shape = node.operand(0)->shape();
  CARINA_TRY(const ir::Ints multiples, constantInts(node.operand(1), "multiples"));
  if (multiples.size() != shape.size())
    return fail(Code::InvalidOperator, "{} multiples do not match {} dimensions", multiples.size(),
                shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto size = checkedMul(shape[i], multiples[i]);
    if (multiples[i] < 1 || !size)
      return fail(Code::InvalidOperator, "{} repeats of {} elements are not possible", multiples[i],
                  shape[i]);
    shape[i] = *size;
  }
  return resultShape(node, shape);
}

Status broadcastTo(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  CARINA_TRY(const ir::Ints shape, constantInts(node.operand(1), "sizes"));
  const auto both = broadcastShapes(node.operand(0)->shape(), shape);
  if (!both || *both != shape)
    return fail(Code::InvalidOperator, "{} does not broadcast to {}", shapeText(node.operand(0)->shape()),
                shapeText(shape));
  return resultShape(node, shape);
}

Status reverse(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  CARINA_TRY(const ir::Ints axes, constantInts(node.operand(1), "axes"));
  CARINA_TRY([[maybe_unused]] const ir::Ints normal, axesOf(axes, node.operand(0)->rank()));
  return resultShape(node, node.operand(0)->shape());
}

Status shapeOf(const ir::Node& node) {
  if (node.result()->dtype() != DType::Int32 && node.result()->dtype() != DType::Int64)
    return fail(Code::WrongElementType, "the result has type {}, expected int32 or int64",
                ir::typeText(node.result()->type));
  return resultShape(node, {node.operand(0)->rank()});
}

Status gather(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  const auto op = ir::cast<Gather>(&node);
  const Shape &input = op.input()->shape(), &indices = op.indices()->shape();
  if (op.indices()->dtype() != DType::Int32)
    return fail(Code::WrongElementType, "the indices have type {}, expected int32",
                ir::typeText(op.indices()->type));
  CARINA_TRY(const int64_t axis, axisOf(op.axis(), op.input()->rank()));
  if (op.batchDims() != 0)
    return fail(Code::InvalidOperator, "batch_dims {} is not supported", op.batchDims())
        .withRemedy("gather from one table per operator");
  Shape shape(input.begin(), input.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), input.begin() + axis + 1, input.end());
  return resultShape(node, shape);
}

namespace {

Status blocked(const ir::Node& node, bool toDepth) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  CARINA_RETURN_IF_ERROR(rankIs(node.operand(0), 4, "the input"));
  const auto block = node.attributeAs<int64_t>(0);
  Shape s = node.operand(0)->shape();
  const bool fits = block >= 1 && block < 4096 &&
                    (toDepth ? s[1] % block == 0 && s[2] % block == 0 : s[3] % (block * block) == 0);
  if (!fits) return fail(Code::InvalidOperator, "blocks of {} do not divide {}", block, shapeText(s));
  if (toDepth) return resultShape(node, {s[0], s[1] / block, s[2] / block, s[3] * block * block});
  return resultShape(node, {s[0], s[1] * block, s[2] * block, s[3] / (block * block)});
}

/// Blocks along the dimensions after the batch, with padding or cropping on both sides.
Status batched(const ir::Node& node, bool toBatch) {
  CARINA_RETURN_IF_ERROR(keepsType(node));
  Shape shape = node.operand(0)->shape();
  CARINA_TRY(const ir::Ints block, constantInts(node.operand(1), "blocks"));
  CARINA_TRY(const ir::Ints edges, constantInts(node.operand(2), "edges"));
  if (shape.size() != 4 || block.size() != 2 || edges.size() != 4)
    return fail(Code::UnsupportedForm, "{} block sizes for {} dimensions are not supported, expected 2 for 4",
                block.size(), shape.size());
  for (size_t i = 0; i < 2; ++i) {
    const int64_t b = block[i], before = edges[2 * i], after = edges[2 * i + 1];
    int64_t& size = shape[i + 1];
    if (b < 1 || b > 4096 || before < 0 || after < 0)
      return fail(Code::InvalidOperator, "a block of {} elements is not possible", b);
    if (toBatch) {
      size += before + after;
      if (size % b != 0) return fail(Code::InvalidOperator, "blocks of {} do not divide {}", b, size);
      size /= b;
      shape[0] *= b;
    } else {
      if (shape[0] % b != 0)
        return fail(Code::InvalidOperator, "blocks of {} do not divide a batch of {}", b, shape[0]);
      shape[0] /= b;
      size = size * b - before - after;
      if (size < 1) return fail(Code::InvalidOperator, "crops of {} and {} leave no elements", before, after);
    }
  }
  return resultShape(node, shape);
}

}  // namespace

Status spaceToDepth(const ir::Node& node) {
  return blocked(node, true);
}
Status depthToSpace(const ir::Node& node) {
  return blocked(node, false);
}
Status spaceToBatch(const ir::Node& node) {
  return batched(node, true);
}
Status batchToSpace(const ir::Node& node) {
  return batched(node, false);
}

}  // namespace carina::tfl::check
