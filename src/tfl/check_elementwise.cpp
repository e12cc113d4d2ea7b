// SPDX-License-Identifier: Apache-2.0
// Checks of elementwise operators and of reductions.
#include <algorithm>

#include "tfl/check.hpp"
#include "tfl/geometry.hpp"
#include "tfl/results.hpp"

namespace carina::tfl::check {

namespace {

Status broadcasting(const ir::Node& node, const std::vector<const ir::Value*>& operands) {
  Shape shape;
  for (const ir::Value* operand : operands) {
    const auto both = broadcastShapes(shape, operand->shape());
    if (!both)
      return fail(Code::InvalidOperator, "shapes {} and {} do not broadcast", shapeText(shape),
                  shapeText(operand->shape()));
    shape = *both;
  }
  return resultShape(node, shape);
}

Status sameType(const ir::Value* a, const ir::Value* b) {
  if (a->dtype() == b->dtype()) return {};
  return fail(Code::WrongElementType, "{} and {} have different types", ir::typeText(a->type),
              ir::typeText(b->type))
      .withRemedy("convert one of them with QUANTIZE");
}

}  // namespace

Status unary(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(sameType(node.operand(0), node.result()));
  return resultShape(node, node.operand(0)->shape());
}

Status quantize(const ir::Node& node) {
  return resultShape(node, node.operand(0)->shape());
}

Status cast(const ir::Node& node) {
  return resultShape(node, node.operand(0)->shape());
}

Status binary(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(sameType(node.operand(0), node.operand(1)));
  CARINA_RETURN_IF_ERROR(sameType(node.operand(0), node.result()));
  return broadcasting(node, {node.operand(0), node.operand(1)});
}

Status compare(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(sameType(node.operand(0), node.operand(1)));
  if (node.result()->dtype() != DType::Bool)
    return fail(Code::WrongElementType, "the result of a comparison has type {}, expected bool",
                dtypeName(node.result()->dtype()));
  return broadcasting(node, {node.operand(0), node.operand(1)});
}

Status logical(const ir::Node& node) {
  for (const ir::Value* value : {node.operand(0), node.operand(1), node.result()}) {
    if (value->dtype() != DType::Bool)
      return fail(Code::WrongElementType, "an operand has type {}, expected bool", ir::typeText(value->type));
  }
  return broadcasting(node, {node.operand(0), node.operand(1)});
}

Status prelu(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(sameType(node.operand(0), node.result()));
  return broadcasting(node, {node.operand(0), node.operand(1)});
}

Status select(const ir::Node& node) {
  const ir::Value* condition = node.operand(0);
  if (condition->dtype() != DType::Bool)
    return fail(Code::WrongElementType, "the condition has type {}, expected bool",
                ir::typeText(condition->type));
  CARINA_RETURN_IF_ERROR(sameType(node.operand(1), node.operand(2)));
  CARINA_RETURN_IF_ERROR(sameType(node.operand(1), node.result()));
  // SELECT accepts a vector of booleans that selects whole rows of the others.
  if (ir::isa<Select>(&node) && condition->rank() == 1 && node.operand(1)->rank() > 1) {
    if (node.operand(1)->shape() != node.operand(2)->shape() || node.operand(1)->dim(0) != condition->dim(0))
      return fail(Code::WrongElementType, "the condition has {} elements, expected one for each row of {}",
                  condition->dim(0), shapeText(node.operand(1)->shape()));
    return resultShape(node, node.operand(1)->shape());
  }
  return broadcasting(node, {condition, node.operand(1), node.operand(2)});
}

Status reduce(const ir::Node& node) {
  const ir::Value* input = node.operand(0);
  CARINA_RETURN_IF_ERROR(sameType(input, node.result()));
  CARINA_TRY(const ir::Ints given, constantInts(node.operand(1), "axes"));
  CARINA_TRY(const ir::Ints axes, axesOf(given, input->rank()));
  const bool keep = node.attributeAs<bool>(0);
  Shape shape;
  for (int64_t i = 0; i < input->rank(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!reduced) shape.push_back(input->dim(i));
    if (reduced && keep) shape.push_back(1);
  }
  return resultShape(node, shape);
}

Status argExtreme(const ir::Node& node) {
  CARINA_TRY(const ir::Ints given, constantInts(node.operand(1), "axes"));
  if (given.size() != 1) return fail(Code::InvalidOperator, "expected one axis, got {}", given.size());
  CARINA_TRY(const int64_t axis, axisOf(given[0], node.operand(0)->rank()));
  Shape shape = node.operand(0)->shape();
  shape.erase(shape.begin() + axis);
  return resultShape(node, shape);
}

}  // namespace carina::tfl::check
