// SPDX-License-Identifier: Apache-2.0
// Result types of pointwise operators, casts and the quantized_decomposed operators.
#include <algorithm>
#include <array>

#include "aten/arguments.hpp"
#include "aten/infer.hpp"
#include "aten/promotion.hpp"

namespace carina::aten::infer {
namespace {

/// The joint shape of all operands.
Result<Shape> broadcastAll(const ir::Node& node) {
  Shape shape;
  for (const ir::Value* operand : node.operands()) {
    if (!operand) continue;
    auto joint = broadcastShapes(shape, operand->shape());
    if (!joint)
      return fail(Code::InvalidOperator, "shapes {} and {} do not broadcast", shapeText(shape),
                  shapeText(operand->shape()));
    shape = std::move(*joint);
  }
  return shape;
}

/// Promotion over the operands and the numbers that are part of the computation.
Result<DType> promotedType(const ir::Node& node) {
  Promotion promotion;
  for (const ir::Value* operand : node.operands()) promotion.add(operand);
  const Arguments arguments(node);
  for (std::string_view name : {"other", "exponent", "self", "min", "max"}) promotion.add(arguments.at(name));
  return promotion.type();
}

Types broadcastTo(const ir::Node& node, DType dtype) {
  CARINA_TRY(Shape shape, broadcastAll(node));
  return oneResult(dtype, std::move(shape));
}

}  // namespace

Types oneResult(DType dtype, Shape shape) {
  if (!checkedNumElements(shape)) return fail(Code::TooLarge, "the result {} is too large", shapeText(shape));
  return std::vector<ir::Type>{{dtype, std::move(shape)}};
}

namespace {

/// Operators on the bits of integers and booleans.
bool worksOnBits(std::string_view op) {
  for (const std::string_view name : {"aten.bitwise_", "aten.__and__", "aten.__or__", "aten.__xor__",
                                      "aten.__lshift__", "aten.__rshift__"}) {
    if (op.starts_with(name)) return true;
  }
  return false;
}

/// Functions of real numbers that PyTorch supports for floating-point tensors only, although they keep the
/// type.
bool wantsFloats(std::string_view op) {
  static constexpr std::array<std::string_view, 17> kNames{
      "frac",       "leaky_relu", "elu",         "selu",         "celu",     "gelu",
      "silu",       "mish",       "hardsigmoid", "hardswish",    "softplus", "log_sigmoid",
      "hardshrink", "softshrink", "rrelu",       "logcumsumexp", "prelu"};
  op.remove_prefix(std::min(op.size(), std::string_view("aten.").size()));
  return std::find(kNames.begin(), kNames.end(), op.substr(0, op.find('.'))) != kNames.end();
}

/// Arithmetic that PyTorch does not support for booleans.
bool wantsNumbers(std::string_view op) {
  static constexpr std::array<std::string_view, 11> kNames{"floor_divide",
                                                           "remainder",
                                                           "fmod",
                                                           "pow",
                                                           "sub",
                                                           "rsub",
                                                           "__lshift__",
                                                           "__rshift__",
                                                           "addcmul",
                                                           "bitwise_left_shift",
                                                           "bitwise_right_shift"};
  op.remove_prefix(std::min(op.size(), std::string_view("aten.").size()));
  return std::find(kNames.begin(), kNames.end(), op.substr(0, op.find('.'))) != kNames.end();
}

/// Rejects integer quotients and remainders whose constant divisor contains 0.
Status checkDivisor(const ir::Node& node) {
  const auto refused = [&] {
    return fail(Code::WrongElementType, "{} divides integers by 0", node.opName())
        .withRemedy("PyTorch raises a ZeroDivisionError here: divide floats, or keep 0 out of the divisor");
  };
  if (const Arguments arguments(node); arguments.given("other"))
    return ir::scalarReal(arguments.at("other")) == 0 ? Status(refused()) : Status();
  const ir::Value* divisor = node.operands().size() == 2 ? node.operands()[1] : nullptr;
  if (!divisor || !divisor->isConstant() || !isInteger(divisor->dtype())) return {};
  for (int64_t i = 0; i < divisor->numElements(); ++i) {
    if (divisor->constant().integerAt(i) == 0) return refused();
  }
  return {};
}

bool dividesWhole(std::string_view op) {
  for (const std::string_view name : {"aten.floor_divide.", "aten.remainder.", "aten.fmod.", "aten.div."}) {
    if (op.starts_with(name)) return true;
  }
  return false;
}

}  // namespace

Types triangle(const ir::Node& node) {
  const ir::Value* input = node.operand(0);
  if (input->rank() < 2)
    return fail(Code::InvalidOperator, "{} takes matrices, got {}", node.opName(), shapeText(input->shape()));
  return oneResult(input->dtype(), input->shape());
}

Types unarySame(const ir::Node& node) {
  const DType dtype = node.operand(0)->dtype();
  if (!isFloat(dtype) && wantsFloats(node.opName()))
    return fail(Code::WrongElementType, "{} is not defined on {}", node.opName(), dtypeName(dtype));
  if (isFloat(dtype) && worksOnBits(node.opName()))
    return fail(Code::WrongElementType, "{} needs integers, not {}", node.opName(), dtypeName(dtype));
  if (const Arguments arguments(node); arguments.given("dim"))
    CARINA_RETURN_IF_ERROR(checkDim(arguments.integer("dim"), node.operand(0)->rank()));
  return oneResult(node.operand(0)->dtype(), node.operand(0)->shape());
}
Types unaryFloat(const ir::Node& node) {
  return oneResult(floatTypeOf(node.operand(0)->dtype()), node.operand(0)->shape());
}
Types unaryBool(const ir::Node& node) {
  return oneResult(DType::Bool, node.operand(0)->shape());
}
Types noResult(const ir::Node&) {
  return std::vector<ir::Type>{};
}

Types binary(const ir::Node& node) {
  CARINA_TRY(const DType dtype, promotedType(node));
  if (isFloat(dtype) && worksOnBits(node.opName()))
    return fail(Code::WrongElementType, "{} needs integers, not {}", node.opName(), dtypeName(dtype));
  const bool divides = dividesWhole(node.opName());
  if (dtype == DType::Bool && (divides || wantsNumbers(node.opName()))) {
    return fail(Code::WrongElementType, "{} is not defined on bool", node.opName())
        .withRemedy("convert the operands to numbers first, or use a logical operator");
  }
  if (divides && isInteger(dtype)) CARINA_RETURN_IF_ERROR(checkDivisor(node));
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
  const std::string_view op = node.opName();
  if (op.starts_with("aten.clamp.")) {
    const auto absent = [&](std::string_view name) {
      const int operand = node.def().operandIndex(name);
      return operand < 0 ? !Arguments(node).given(name)
                         : node.operandGroup(static_cast<size_t>(operand)).empty();
    };
    if (absent("min") && absent("max")) {
      return fail(Code::InvalidOperator, "{} needs a lower or an upper bound", op)
          .withRemedy("give min, max or both, or leave the operator out");
    }
  }
  const auto isReal = [](const ir::Value* value) { return value && isFloat(value->dtype()); };
  if (op == "aten.addcdiv.default" && std::none_of(node.operands().begin(), node.operands().end(), isReal))
    return fail(Code::WrongElementType, "{} is not defined on integers", op)
        .withRemedy("convert the operands with .float() in the model");
  return binary(node);
}

Types where(const ir::Node& node) {
  const DType condition = node.operand(0)->dtype();
  if (condition != DType::Bool && condition != DType::UInt8)
    return fail(Code::WrongElementType, "the condition must be bool");
  Promotion promotion;
  for (size_t i = 1; i < node.operands().size(); ++i) promotion.add(node.operands()[i]);
  for (size_t i = 0; i < node.def().attributes.size(); ++i) promotion.add(node.attribute(i));
  CARINA_TRY(const DType dtype, promotion.type());
  return broadcastTo(node, dtype);
}

Types maskedFill(const ir::Node& node) {
  const DType mask = node.operand(1)->dtype();
  if (mask != DType::Bool)
    return fail(Code::WrongElementType, "the mask has type {}, expected bool", dtypeName(mask));
  return broadcastTo(node, node.operand(0)->dtype());
}

Types prelu(const ir::Node& node) {
  const ir::Value* input = node.operand(0);
  const int64_t count = node.operand(1)->numElements();
  const int64_t channels = input->rank() >= 2 ? input->dim(1) : input->rank() == 1 ? input->dim(0) : 1;
  if (count != 1 && count != channels)
    return fail(Code::InvalidOperator, "{} slopes do not match {} channels", count, channels);
  return unarySame(node);
}

Types glu(const ir::Node& node) {
  if (!isFloat(node.operand(0)->dtype()))
    return fail(Code::WrongElementType, "glu is not defined on {}", dtypeName(node.operand(0)->dtype()));
  ir::Type type = node.operand(0)->type;
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim", -1), node.operand(0)->rank()));
  if (type.shape.empty() || type.shape[static_cast<size_t>(dim)] % 2 != 0)
    return fail(Code::InvalidOperator, "glu cannot halve a dimension of odd size");
  type.shape[static_cast<size_t>(dim)] /= 2;
  return std::vector<ir::Type>{type};
}

Types copy(const ir::Node& node) {
  const auto joint = broadcastShapes(node.operand(0)->shape(), node.operand(1)->shape());
  if (joint != node.operand(0)->shape())
    return fail(Code::InvalidOperator, "the source does not broadcast to the destination");
  return unarySame(node);
}

Types inPlace(const ir::Node& node) {
  return unarySame(node);
}

Types cast(const ir::Node& node) {
  return oneResult(Arguments(node).dtype().value_or(node.operand(0)->dtype()), node.operand(0)->shape());
}
Types castAs(const ir::Node& node) {
  return oneResult(node.operand(1)->dtype(), node.operand(0)->shape());
}
Types convertElementType(const ir::Node& node) {
  return cast(node);
}

namespace {

/// Requires one scale and zero point for each channel.
Status checkChannelScales(const ir::Node& node) {
  const Arguments arguments(node);
  if (!arguments.has("axis")) return {};
  const ir::Value *input = node.operand(0), *scales = node.operand(1), *zeros = node.operand(2);
  if (zeros && !isInteger(zeros->dtype()))
    return fail(Code::WrongElementType, "zero points must be integers, got {}", dtypeName(zeros->dtype()));
  CARINA_TRY(const int64_t axis, wrapDim(arguments.integer("axis"), input->rank()));
  const int64_t channels = input->rank() == 0 ? 1 : input->dim(axis);
  if (scales->numElements() == channels && (!zeros || zeros->numElements() == channels)) return {};
  return fail(Code::UnusableQuantization, "scales {} and zero points {} do not fit {} channels",
              shapeText(scales->shape()), zeros ? shapeText(zeros->shape()) : "none", channels);
}

/// The codes of quantize and dequantize nodes must be within their type; PyTorch requires this when such a
/// node is created.
Status checkCodes(const ir::Node& node) {
  const Arguments arguments(node);
  const auto dtype = arguments.dtype();
  if (!dtype) return {};
  if (!isInteger(*dtype))
    return fail(Code::WrongElementType, "codes of type {} are not supported", dtypeName(*dtype));
  CARINA_RETURN_IF_ERROR(checkChannelScales(node));
  if (!arguments.given("quant_min") || !arguments.given("quant_max")) return {};
  const int64_t low = arguments.integer("quant_min"), high = arguments.integer("quant_max");
  if (low <= high && low >= integerMin(*dtype) && high <= integerMax(*dtype)) return {};
  return fail(Code::UnusableQuantization, "quant_min {} and quant_max {} are not a valid range for {}", low,
              high, dtypeName(*dtype))
      .withRemedy("quantize the network with a range that fits the type");
}

}  // namespace

Types quantize(const ir::Node& node) {
  if (!isFloat(node.operand(0)->dtype()))
    return fail(Code::WrongElementType, "only floating-point values can be quantized");
  CARINA_RETURN_IF_ERROR(checkCodes(node));
  if (Arguments(node).dtype() == DType::Int64)
    return fail(Code::WrongElementType, "codes of type int64 are not supported")
        .withRemedy("quantize to int8, uint8, int16, uint16 or int32");
  return cast(node);
}

Types dequantize(const ir::Node& node) {
  if (!isInteger(node.operand(0)->dtype()))
    return fail(Code::WrongElementType, "the codes have type {}, but only integers can be dequantized",
                dtypeName(node.operand(0)->dtype()));
  CARINA_RETURN_IF_ERROR(checkCodes(node));
  return oneResult(Arguments(node).dtype("out_dtype").value_or(DType::Float32), node.operand(0)->shape());
}

Types chooseQparams(const ir::Node&) {
  return std::vector<ir::Type>{{DType::Float64, {1}}, {DType::Int64, {1}}};
}

}  // namespace carina::aten::infer
