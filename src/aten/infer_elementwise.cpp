// SPDX-License-Identifier: Apache-2.0
// Result types of pointwise operators, casts and the quantized_decomposed operators.
#include "aten/arguments.hpp"
#include "aten/infer.hpp"
#include "aten/promotion.hpp"

namespace carina::aten::infer {
namespace {

Types one(DType dtype, Shape shape) {
  return std::vector<ir::Type>{{dtype, std::move(shape)}};
}

/// The joint shape of all operands.
Result<Shape> broadcastAll(const ir::Node& node) {
  Shape shape;
  for (const ir::Value* operand : node.operands()) {
    if (!operand) continue;
    auto joint = broadcastShapes(shape, operand->shape());
    if (!joint)
      return fail("shapes {} and {} do not broadcast", shapeText(shape), shapeText(operand->shape()));
    shape = std::move(*joint);
  }
  return shape;
}

/// Promotion over the operands and the numbers that take part in the computation.
Result<DType> promotedType(const ir::Node& node) {
  Promotion promotion;
  for (const ir::Value* operand : node.operands()) promotion.add(operand);
  const Arguments arguments(node);
  for (std::string_view name : {"other", "exponent", "self", "min", "max"}) promotion.add(arguments.at(name));
  return promotion.type();
}

Types broadcastTo(const ir::Node& node, DType dtype) {
  CARINA_TRY(Shape shape, broadcastAll(node));
  return one(dtype, std::move(shape));
}

}  // namespace

Types unarySame(const ir::Node& node) {
  return one(node.operand(0)->dtype(), node.operand(0)->shape());
}
Types unaryFloat(const ir::Node& node) {
  return one(floatTypeOf(node.operand(0)->dtype()), node.operand(0)->shape());
}
Types unaryBool(const ir::Node& node) {
  return one(DType::Bool, node.operand(0)->shape());
}
Types noResult(const ir::Node&) {
  return std::vector<ir::Type>{};
}

Types binary(const ir::Node& node) {
  CARINA_TRY(const DType dtype, promotedType(node));
  return broadcastTo(node, dtype);
}

Types binaryFloat(const ir::Node& node) {
  CARINA_TRY(const DType dtype, promotedType(node));
  return broadcastTo(node, floatTypeOf(dtype));
}

Types divMode(const ir::Node& node) {
  return Arguments(node).given("rounding_mode") ? binary(node) : binaryFloat(node);
}

Types compare(const ir::Node& node) {
  if (auto common = promotedType(node); !common) return std::move(common).error();
  return broadcastTo(node, DType::Bool);
}

Types pointwiseSeveral(const ir::Node& node) {
  return binary(node);
}

Types where(const ir::Node& node) {
  const DType condition = node.operand(0)->dtype();
  if (condition != DType::Bool && condition != DType::UInt8) return fail("the condition must be bool");
  Promotion promotion;
  for (size_t i = 1; i < node.operands().size(); ++i) promotion.add(node.operands()[i]);
  for (size_t i = 0; i < node.def().attributes.size(); ++i) promotion.add(node.attribute(i));
  CARINA_TRY(const DType dtype, promotion.type());
  return broadcastTo(node, dtype);
}

Types maskedFill(const ir::Node& node) {
  return broadcastTo(node, node.operand(0)->dtype());
}

Types prelu(const ir::Node& node) {
  const ir::Value* input = node.operand(0);
  const int64_t count = node.operand(1)->numElements();
  const int64_t channels = input->rank() >= 2 ? input->dim(1) : input->rank() == 1 ? input->dim(0) : 1;
  if (count != 1 && count != channels) return fail("{} slopes for {} channels", count, channels);
  return unarySame(node);
}

Types glu(const ir::Node& node) {
  ir::Type type = node.operand(0)->type;
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim", -1), node.operand(0)->rank()));
  if (type.shape.empty() || type.shape[static_cast<size_t>(dim)] % 2 != 0)
    return fail("glu halves a dimension of odd size");
  type.shape[static_cast<size_t>(dim)] /= 2;
  return std::vector<ir::Type>{type};
}

Types copy(const ir::Node& node) {
  const auto joint = broadcastShapes(node.operand(0)->shape(), node.operand(1)->shape());
  if (joint != node.operand(0)->shape()) return fail("the source does not broadcast to the destination");
  return unarySame(node);
}

Types inPlace(const ir::Node& node) {
  return unarySame(node);
}

Types cast(const ir::Node& node) {
  return one(Arguments(node).dtype().value_or(node.operand(0)->dtype()), node.operand(0)->shape());
}
Types castAs(const ir::Node& node) {
  return one(node.operand(1)->dtype(), node.operand(0)->shape());
}
Types convertElementType(const ir::Node& node) {
  return cast(node);
}

namespace {

/// The codes of quantize and dequantize nodes lie in their type, as PyTorch demands where such a node is
/// made.
Status checkCodes(const ir::Node& node) {
  const Arguments arguments(node);
  const auto dtype = arguments.dtype();
  if (!dtype || !isInteger(*dtype) || !arguments.given("quant_min") || !arguments.given("quant_max"))
    return {};
  const int64_t low = arguments.integer("quant_min"), high = arguments.integer("quant_max");
  if (low <= high && low >= integerMin(*dtype) && high <= integerMax(*dtype)) return {};
  return fail("quant_min {} and quant_max {} are no range of {}", low, high, dtypeName(*dtype))
      .withRemedy("quantize the network with a range that the type holds");
}

}  // namespace

Types quantize(const ir::Node& node) {
  if (!isFloat(node.operand(0)->dtype())) return fail("only floating-point values can be quantized");
  CARINA_RETURN_IF_ERROR(checkCodes(node));
  return cast(node);
}

Types dequantize(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkCodes(node));
  return one(Arguments(node).dtype("out_dtype").value_or(DType::Float32), node.operand(0)->shape());
}

Types chooseQparams(const ir::Node&) {
  return std::vector<ir::Type>{{DType::Float64, {1}}, {DType::Int64, {1}}};
}

}  // namespace carina::aten::infer
