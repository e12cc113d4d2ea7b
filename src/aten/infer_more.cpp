// SPDX-License-Identifier: Apache-2.0
// Result types of operators that are less common in exports.
#include "aten/arguments.hpp"
#include "aten/geometry.hpp"
#include "aten/infer.hpp"
#include "aten/join_shapes.hpp"
#include "aten/promotion.hpp"
#include "aten/reduce_dims.hpp"

namespace carina::aten {

Result<JoinPlan> joinPlan(const ir::Node& node) {
  const std::string_view name = node.opName();
  const bool columns = name == "aten.column_stack.default";
  const size_t least = name == "aten.dstack.default" ? 3 : name == "aten.hstack.default" ? 1 : 2;
  JoinPlan plan;
  for (const ir::Value* operand : node.operands()) {
    Shape shape = operand->shape();
    if (columns && shape.size() < 2) {
      shape = {operand->numElements(), 1};
    } else {
      if (shape.empty()) shape = {1};
      if (least == 3 && shape.size() == 1) shape = {1, shape[0]};
      if (least == 2 && shape.size() == 1) shape = {1, shape[0]};
      if (least == 3 && shape.size() == 2) shape.push_back(1);
    }
    plan.parts.push_back(std::move(shape));
  }
  if (plan.parts.empty()) return fail(Code::InvalidOperator, "{}: expected at least one tensor", name);
  plan.dim = name == "aten.vstack.default"   ? 0
             : name == "aten.dstack.default" ? 2
             : plan.parts[0].size() == 1     ? 0
                                             : 1;
  plan.output = plan.parts[0];
  const auto d = static_cast<size_t>(plan.dim);
  plan.output[d] = 0;
  for (Shape part : plan.parts) {
    if (part.size() != plan.output.size())
      return fail(Code::InvalidOperator, "{}: the tensors have different ranks", name);
    const auto sum = checkedAdd(plan.output[d], part[d]);
    Shape expected = plan.output;
    expected[d] = part[d];
    if (!sum || part != expected)
      return fail(Code::InvalidOperator, "{}: shapes {} and {} do not match", name, shapeText(plan.output),
                  shapeText(part));
    plan.output[d] = *sum;
  }
  return plan;
}

namespace infer {

Types joinStack(const ir::Node& node) {
  CARINA_TRY(const JoinPlan plan, joinPlan(node));
  Promotion promotion;
  for (const ir::Value* operand : node.operands()) promotion.add(operand);
  CARINA_TRY(const DType dtype, promotion.type());
  return oneResult(dtype, plan.output);
}

Types addmv(const ir::Node& node) {
  if (node.opName() != "aten.addr.default") CARINA_RETURN_IF_ERROR(checkFactors(node));
  const Shape &a = node.operand(1)->shape(), &b = node.operand(2)->shape();
  Shape shape;
  if (node.opName() == "aten.addmv.default" && a.size() == 2 && b.size() == 1 && a[1] == b[0]) {
    shape = {a[0]};
  } else if (node.opName() == "aten.addr.default" && a.size() == 1 && b.size() == 1) {
    shape = {a[0], b[0]};
  } else if (node.opName() == "aten.addbmm.default" && a.size() == 3 && b.size() == 3 && a[0] == b[0] &&
             a[2] == b[1]) {
    shape = {a[1], b[2]};
  } else {
    return mismatch(node);
  }
  if (broadcastShapes(node.operand(0)->shape(), shape) != shape) return mismatch(node);
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}

Types cumulativeExtreme(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkDim(Arguments(node).integer("dim"), node.operand(0)->rank()));
  return std::vector<ir::Type>{node.operand(0)->type, {DType::Int64, node.operand(0)->shape()}};
}

Types countNonzero(const ir::Node& node) {
  CARINA_TRY(ReduceDims dims, reduceDims(node));
  return oneResult(DType::Int64, std::move(dims.output));
}

Types orderStatistic(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const Arguments a(node);
  if (dims.count == 0) return fail(Code::InvalidOperator, "{}: the dimension has no elements", node.opName());
  if (a.has("k") && (a.integer("k") < 1 || a.integer("k") > dims.count))
    return fail(Code::InvalidOperator, "k = {} exceeds the dimension's {} elements", a.integer("k"),
                dims.count);
  std::vector<ir::Type> types{{node.operand(0)->dtype(), dims.output}};
  if (node.def().results.size() == 2) types.push_back({DType::Int64, dims.output});
  return types;
}

Types bothExtremes(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  if (dims.count == 0) return fail(Code::InvalidOperator, "the dimension has no elements");
  const ir::Type type{node.operand(0)->dtype(), dims.output};
  return std::vector<ir::Type>{type, type};
}

Types take(const ir::Node& node) {
  const DType index = node.operand(1)->dtype();
  if (index != DType::Int64 && index != DType::Int32)
    return fail(Code::InvalidOperator, "take: expected an int64 index, got {}", dtypeName(index));
  return oneResult(node.operand(0)->dtype(), node.operand(1)->shape());
}

Types search(const ir::Node& node) {
  const bool sequenceFirst = node.opName().starts_with("aten.searchsorted");
  if (sequenceFirst && node.operand(2))
    return fail(Code::UnsupportedForm, "searchsorted: a sorter is not supported");
  const Shape &sorted = node.operand(sequenceFirst ? 0 : 1)->shape(),
              &values = node.operand(sequenceFirst ? 1 : 0)->shape();
  // Either one vector for all lines, or one for each line.
  const bool lines = sequenceFirst && !sorted.empty() && sorted.size() == values.size() &&
                     std::equal(sorted.begin(), sorted.end() - 1, values.begin());
  if (sorted.size() != 1 && !lines)
    return fail(Code::InvalidOperator, "the boundaries must be one vector, or one vector for each row");
  return oneResult(Arguments(node).boolean("out_int32") ? DType::Int32 : DType::Int64,
                   node.operand(sequenceFirst ? 1 : 0)->shape());
}

Types distances(const ir::Node& node) {
  const Shape &a = node.operand(0)->shape(), &b = node.operand(1)->shape();
  if (a.size() < 2 || b.size() < 2 || a.back() != b.back()) return mismatch(node);
  auto shape = broadcastShapes({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
  if (!shape) return mismatch(node);
  shape->push_back(a[a.size() - 2]);
  shape->push_back(b[b.size() - 2]);
  return oneResult(node.operand(0)->dtype(), std::move(*shape));
}
Types pairDistances(const ir::Node& node) {
  const Shape& a = node.operand(0)->shape();
  if (a.size() != 2) return mismatch(node);
  return oneResult(node.operand(0)->dtype(), {a[0] * (a[0] - 1) / 2});
}

/// Reduction of two broadcast operands over "dim" (cosine_similarity) or the last dimension
/// (pairwise_distance).
Types similarity(const ir::Node& node) {
  const DType dtype = node.operand(0)->dtype();
  if (!isFloat(dtype) || node.operand(1)->dtype() != dtype)
    return fail(Code::WrongElementType,
                "{}: the operands have types {} and {}, expected one floating-point type", node.opName(),
                dtypeName(dtype), dtypeName(node.operand(1)->dtype()));
  const auto joint = broadcastShapes(node.operand(0)->shape(), node.operand(1)->shape());
  if (!joint || joint->empty()) return mismatch(node);
  const Arguments a(node);
  CARINA_TRY(const int64_t dim, wrapDim(a.integer("dim", -1), static_cast<int64_t>(joint->size())));
  Shape shape = *joint;
  shape[static_cast<size_t>(dim)] = 1;
  if (!a.boolean("keepdim")) shape.erase(shape.begin() + dim);
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}

Types unfoldWindows(const ir::Node& node) {
  CARINA_TRY(const WindowGeometry g, windowGeometry(node));
  return oneResult(node.operand(0)->dtype(), {g.columns.begin() + (g.batched ? 0 : 1), g.columns.end()});
}
Types foldWindows(const ir::Node& node) {
  CARINA_TRY(const WindowGeometry g, windowGeometry(node));
  const auto whole = [&g](const Shape& shape) {
    return Shape(shape.begin() + (g.batched ? 0 : 1), shape.end());
  };
  if (node.operand(0)->shape() != whole(g.columns))
    return fail(Code::WrongElementType, "the columns have shape {}, expected {}",
                shapeText(node.operand(0)->shape()), shapeText(g.columns));
  return oneResult(node.operand(0)->dtype(), whole(g.image));
}

Types nativeDropout(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkNotTraining(node));
  return std::vector<ir::Type>{node.operand(0)->type, {DType::Bool, node.operand(0)->shape()}};
}

Types batchStatistics(const ir::Node& node) {
  const ir::Type& input = node.operand(0)->type;
  if (input.shape.size() < 2) return mismatch(node);
  const ir::Type statistics{input.dtype, {input.shape[1]}};
  return std::vector<ir::Type>{input, statistics, statistics};
}

Types trace(const ir::Node& node) {
  if (node.operand(0)->rank() != 2) return mismatch(node);
  return oneResult(isFloat(node.operand(0)->dtype()) ? node.operand(0)->dtype() : DType::Int64, {});
}

}  // namespace infer
}  // namespace carina::aten
