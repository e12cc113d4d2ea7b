// SPDX-License-Identifier: Apache-2.0
// Result types of reductions, scans, sorting and softmax.
#include "aten/arguments.hpp"
#include "aten/infer.hpp"
#include "aten/promotion.hpp"
#include "aten/reduce_dims.hpp"

namespace carina::aten {

Result<ReduceDims> reduceDims(const ir::Node& node) {
  const Shape& shape = node.operand(0)->shape();
  const Arguments arguments(node);
  const auto rank = static_cast<int64_t>(shape.size());
  ReduceDims result;
  result.reduced.assign(shape.size(), false);
  ir::Ints dims = arguments.ints("dim");
  const bool emptyMeansNone = node.opName() == "aten.any.dims" || node.opName() == "aten.all.dims";
  const bool all = dims.empty() && !(emptyMeansNone && arguments.given("dim"));
  if (all) result.reduced.assign(shape.size(), true);
  for (int64_t dim : dims) {
    CARINA_TRY(const int64_t wrapped, wrapDim(dim, rank));
    if (rank == 0) continue;
    if (result.reduced[static_cast<size_t>(wrapped)])
      return fail(Code::InvalidOperator, "dimension {} is named twice", dim);
    result.reduced[static_cast<size_t>(wrapped)] = true;
  }
  const bool keep = arguments.boolean("keepdim");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!result.reduced[i]) {
      result.output.push_back(shape[i]);
    } else {
      result.count *= shape[i];
      if (keep) result.output.push_back(1);
    }
  }
  return result;
}

namespace infer {
namespace {

DType accumulatorType(const ir::Node& node) {
  const DType input = node.operand(0)->dtype();
  if (auto given = Arguments(node).dtype()) return *given;
  return isFloat(input) ? input : DType::Int64;
}

Types reduced(const ir::Node& node, DType dtype) {
  CARINA_TRY(ReduceDims dims, reduceDims(node));
  return std::vector<ir::Type>{{dtype, std::move(dims.output)}};
}

Status requireFloat(const ir::Node& node) {
  if (isFloat(node.operand(0)->dtype())) return {};
  return fail(Code::WrongElementType, "{} needs floating-point values, got {}", node.opName(),
              dtypeName(node.operand(0)->dtype()));
}

Types valuesAndIndices(const ir::Node& node, Shape shape) {
  return std::vector<ir::Type>{{node.operand(0)->dtype(), shape}, {DType::Int64, shape}};
}

}  // namespace

Types sum(const ir::Node& node) {
  if (node.opName().starts_with("aten.mean")) {
    const auto dtype = Arguments(node).dtype();
    if (!dtype) CARINA_RETURN_IF_ERROR(requireFloat(node));
    if (dtype && !isFloat(*dtype)) {
      return fail(Code::WrongElementType, "{}: the result has type {}, expected a floating-point type",
                  node.opName(), dtypeName(*dtype))
          .withRemedy("leave dtype out, or convert the mean afterwards");
    }
  }
  return reduced(node, accumulatorType(node));
}

Types reduceSame(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const std::string_view name = node.opName();
  const bool extreme = name == "aten.amax.default" || name == "aten.amin.default" ||
                       name == "aten.max.default" || name == "aten.min.default";
  if (!extreme) CARINA_RETURN_IF_ERROR(requireFloat(node));
  if (const auto dtype = Arguments(node).dtype(); dtype && !isFloat(*dtype))
    return fail(Code::WrongElementType, "{}: the result has type {}, expected a floating-point type",
                node.opName(), dtypeName(*dtype))
        .withRemedy("leave dtype out, or convert the result afterwards");
  if (extreme && dims.count == 0) return fail(Code::InvalidOperator, "the dimension has no elements");
  return reduced(node, Arguments(node).dtype().value_or(node.operand(0)->dtype()));
}

Types varMean(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(requireFloat(node));
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const ir::Type type{node.operand(0)->dtype(), dims.output};
  return std::vector<ir::Type>{type, type};
}

Types extreme(const ir::Node& node) {
  CARINA_TRY(ReduceDims dims, reduceDims(node));
  if (dims.count == 0) return fail(Code::InvalidOperator, "the dimension has no elements");
  return valuesAndIndices(node, std::move(dims.output));
}

Types argExtreme(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  if (dims.count == 0) return fail(Code::InvalidOperator, "the dimension has no elements");
  return reduced(node, DType::Int64);
}

Types anyAll(const ir::Node& node) {
  return reduced(node, node.operand(0)->dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool);
}

Types cumulative(const ir::Node& node) {
  if (accumulatorType(node) == DType::Bool)
    return fail(Code::InvalidOperator, "{} is not defined on bool", node.opName());
  CARINA_RETURN_IF_ERROR(checkDim(Arguments(node).integer("dim"), node.operand(0)->rank()));
  return std::vector<ir::Type>{{accumulatorType(node), node.operand(0)->shape()}};
}

Types softmax(const ir::Node& node) {
  const Arguments arguments(node);
  CARINA_RETURN_IF_ERROR(checkDim(arguments.integer("dim"), node.operand(0)->rank()));
  DType dtype = arguments.dtype().value_or(node.operand(0)->dtype());
  if (arguments.boolean("half_to_float")) {
    if (dtype != DType::Float16)
      return fail(Code::InvalidOperator, "softmax with half_to_float takes float16, not {}", dtypeName(dtype))
          .withRemedy("call torch.softmax");
    dtype = DType::Float32;
  }
  if (!isFloat(dtype)) return fail(Code::WrongElementType, "softmax needs floating-point values");
  return std::vector<ir::Type>{{dtype, node.operand(0)->shape()}};
}

Types topk(const ir::Node& node) {
  const Arguments arguments(node);
  Shape shape = node.operand(0)->shape();
  CARINA_TRY(const int64_t dim, wrapDim(arguments.integer("dim", -1), node.operand(0)->rank()));
  const int64_t k = arguments.integer("k"), size = shape.empty() ? 1 : shape[static_cast<size_t>(dim)];
  if (k < 0 || k > size)
    return fail(Code::InvalidOperator, "k = {} exceeds the dimension's {} elements", k, size);
  if (!shape.empty()) shape[static_cast<size_t>(dim)] = k;
  return valuesAndIndices(node, std::move(shape));
}

Types sort(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkDim(Arguments(node).integer("dim", -1), node.operand(0)->rank()));
  return valuesAndIndices(node, node.operand(0)->shape());
}

Types argsort(const ir::Node& node) {
  CARINA_TRY(std::vector<ir::Type> both, sort(node));
  return std::vector<ir::Type>{both[1]};
}

}  // namespace infer
}  // namespace carina::aten
