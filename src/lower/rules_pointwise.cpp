// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of two or three operands, with broadcasting.
#include <algorithm>
#include <cmath>

#include "aten/ops.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

/// Both operands of an integer operator in one type and layout.
Result<Lowering::Aligned> integerPair(Lowering& lowering, const ir::Node& node) {
  std::vector<StoredTensor> data;
  for (size_t i = 0; i < 2; ++i) {
    CARINA_TRY(StoredTensor operand, lowering.integers(node.operands()[i]));
    data.push_back(std::move(operand));
  }
  return lowering.align(std::move(data), node.result()->shape());
}

/// TOSA adds, multiplies and compares only int32.
Lowering::Aligned widenedPair(Lowering& lowering, Lowering::Aligned pair) {
  for (ir::Value*& value : pair.values) {
    if (value->dtype() == DType::Int8 || value->dtype() == DType::Int16)
      value = lowering.emit().cast(value, DType::Int32);
  }
  return pair;
}

/// Integer arithmetic in int32; the result is its low bits in the wider type of the operands.
Status integerArithmetic(Lowering& lowering, const ir::Node& node, Binary op, bool swapped = false) {
  CARINA_TRY(Lowering::Aligned pair, integerPair(lowering, node));
  const DType first = pair.values[0]->dtype(), second = pair.values[1]->dtype();
  const DType dtype = dtypeSize(first) >= dtypeSize(second) ? first : second;
  if (dtype == DType::Bool)
    return fail(Code::NoIntegerForm, "{} of bool tensors is not supported on the NPU", node.opName())
        .withRemedy("convert them to int32");
  pair = widenedPair(lowering, std::move(pair));
  if (swapped) std::swap(pair.values[0], pair.values[1]);
  ir::Value* result = lowering.emit().binary(op, pair.values[0], pair.values[1]);
  if (result->dtype() != dtype) result = lowering.emit().cast(result, dtype);
  lowering.define(node.result(), StoredTensor{result, pair.layout});
  return {};
}

double alphaOf(const ir::Node& node) {
  return node.def().attributes.empty() ? 1.0 : ir::scalarReal(node.attribute(0));
}

/// unit = 2 * max(s0, s1) / 2^bits: int8 operands keep 20 fraction bits, int16 ones 15, and the sum still
/// fits. Ethos-U55 and U65 scale the operands of a sum in the same way.
Status lowerSum(Lowering& lowering, const ir::Node& node, bool subtract, bool swapped) {
  const double alpha = alphaOf(node);
  const bool minus = subtract != (alpha < 0);
  if (!lowering.isFloatValue(node.result())) {
    if (alpha != 1)
      return fail(Code::NoIntegerForm, "integer {} with alpha {} is not supported on the NPU", node.opName(),
                  alpha)
          .withRemedy("multiply first, and use an alpha of 1");
    return integerArithmetic(lowering, node, minus ? Binary::Sub : Binary::Add, swapped);
  }
  if (alpha == 0)
    return fail(Code::NoIntegerForm, "{} with alpha 0 is not supported on the NPU", node.opName())
        .withRemedy("drop the operand");
  CARINA_TRY(Pair pair, quantizedPair(lowering, node));
  pair.reals[swapped ? 0 : 1].scales[0] *= std::abs(alpha);
  const double fraction = pair.reals[0].data.dtype() == DType::Int8 ? 0x1p20 : 0x1p15;
  const double unit = 2 * std::max(pair.reals[0].scale(), pair.reals[1].scale()) / fraction;
  CARINA_TRY(auto values, inUnits(lowering, pair, unit));
  if (swapped) std::swap(values[0], values[1]);
  ir::Value* sum = lowering.emit().binary(minus ? Binary::Sub : Binary::Add, values[0], values[1]);
  defineAccumulator(lowering, node.result(), {sum, pair.aligned.layout}, unit);
  return {};
}

Status lowerAdd(Lowering& lowering, const ir::Node& node) {
  return lowerSum(lowering, node, false, false);
}
Status lowerSub(Lowering& lowering, const ir::Node& node) {
  return lowerSum(lowering, node, true, false);
}
/// other - alpha * self
Status lowerRsub(Lowering& lowering, const ir::Node& node) {
  return lowerSum(lowering, node, true, true);
}

/// The value of a factor that is a single positive constant, which only changes the scale.
std::optional<double> positiveConstant(const Lowering& lowering, const ir::Value* value) {
  const QuantizedConstant* constant = lowering.quantizedConstant(value);
  if (!constant || constant->codes.numElements() != 1) return std::nullopt;
  const double real =
      static_cast<double>(constant->codes.integerAt(0) - constant->zeroPoints[0]) * constant->scales[0];
  return real > 0 ? std::optional(real) : std::nullopt;
}

Status lowerMul(Lowering& lowering, const ir::Node& node) {
  if (!lowering.isFloatValue(node.result())) {
    return integerArithmetic(lowering, node, Binary::Mul);
  }
  for (size_t i = 0; i < 2; ++i) {
    const auto factor = positiveConstant(lowering, node.operands()[i]);
    const ir::Value* other = node.operands()[1 - i];
    if (!factor || other->shape() != node.result()->shape()) continue;
    CARINA_TRY(QuantizedValue real, lowering.plainValue(other));
    real.scales[0] *= *factor;
    lowering.define(node.result(), std::move(real));
    return {};
  }
  CARINA_TRY(const Pair pair, quantizedPair(lowering, node));
  std::array<ir::Value*, 2> values{};
  for (size_t i = 0; i < 2; ++i) {
    CARINA_TRY(values[i], lowering.emit().rescale(pair.aligned.values[i], DType::Int32,
                                                  pair.reals[i].zeroPoint, 0, std::array{1.0}));
  }
  ir::Value* product = lowering.emit().binary(Binary::Mul, values[0], values[1]);
  defineAccumulator(lowering, node.result(), {product, pair.aligned.layout},
                    pair.reals[0].scale() * pair.reals[1].scale());
  return {};
}

Status lowerExtreme(Lowering& lowering, const ir::Node& node, Binary op) {
  if (!lowering.isFloatValue(node.result())) {
    return integerArithmetic(lowering, node, op);
  }
  CARINA_TRY(const Pair pair, quantizedPair(lowering, node));
  const double unit = std::min(pair.reals[0].scale(), pair.reals[1].scale());
  CARINA_TRY(const auto values, inUnits(lowering, pair, unit));
  defineAccumulator(lowering, node.result(),
                    {lowering.emit().binary(op, values[0], values[1]), pair.aligned.layout}, unit);
  return {};
}

Status lowerMaximum(Lowering& lowering, const ir::Node& node) {
  return lowerExtreme(lowering, node, Binary::Maximum);
}
Status lowerMinimum(Lowering& lowering, const ir::Node& node) {
  return lowerExtreme(lowering, node, Binary::Minimum);
}

/// The unit in which two operands are compared. Codes with the same scale are compared directly; otherwise
/// codes of one operand are between those of the other, and the unit is 2^-20 (int16: 2^-12) of the coarser
/// scale, which fits int32.
double unitToCompare(const Pair& pair) {
  const double a = pair.reals[0].scale(), b = pair.reals[1].scale();
  if (a == b) return a;
  return std::ldexp(std::max(a, b), pair.reals[0].data.dtype() == DType::Int8 ? -20 : -12);
}

/// a < b is b > a; a != b is not a == b.
Status lowerCompare(Lowering& lowering, const ir::Node& node, Binary op, bool swapped, bool inverted) {
  std::array<ir::Value*, 2> values{};
  Layout layout;
  if (lowering.isFloatValue(node.operands()[0]) || lowering.isFloatValue(node.operands()[1])) {
    CARINA_TRY(const Pair pair, quantizedPair(lowering, node));
    CARINA_TRY(values, inUnits(lowering, pair, unitToCompare(pair)));
    layout = pair.aligned.layout;
  } else {
    CARINA_TRY(Lowering::Aligned aligned, integerPair(lowering, node));
    if (aligned.values[0]->dtype() == DType::Bool)
      return fail(Code::NoIntegerForm, "{} of bool tensors is not supported on the NPU", node.opName())
          .withRemedy("use logical operators");
    aligned = widenedPair(lowering, std::move(aligned));
    values = {aligned.values[0], aligned.values[1]};
    layout = aligned.layout;
  }
  if (swapped) std::swap(values[0], values[1]);
  ir::Value* result = lowering.emit().binary(op, values[0], values[1]);
  if (inverted) result = lowering.emit().unary(Unary::LogicalNot, result);
  lowering.define(node.result(), StoredTensor{result, layout});
  return {};
}

/// Codes are neither NaN nor infinite: each equals itself.
Status lowerIsCode(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const QuantizedValue real, lowering.plainValue(node.operands()[0]));
  ir::Value* code = real.data.value;
  if (code->dtype() != DType::Int32) code = lowering.emit().cast(code, DType::Int32);
  lowering.define(node.result(),
                  StoredTensor{lowering.emit().binary(Binary::Equal, code, code), real.data.layout});
  return {};
}
Status lowerIsNoCode(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const QuantizedValue real, lowering.plainValue(node.operands()[0]));
  ir::Value* code = real.data.value;
  if (code->dtype() != DType::Int32) code = lowering.emit().cast(code, DType::Int32);
  lowering.define(node.result(),
                  StoredTensor{lowering.emit().binary(Binary::Greater, code, code), real.data.layout});
  return {};
}

/// There is no negative zero among codes.
Status lowerSignbit(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const QuantizedValue real, lowering.plainValue(node.operands()[0]));
  CARINA_TRY(ir::Value * value,
             lowering.emit().rescale(real.data.value, DType::Int32, real.zeroPoint, 0, std::array{1.0}));
  ir::Value* zero =
      lowering.emit().reshape(lowering.emit().scalar(DType::Int32, 0), Shape(value->shape().size(), 1));
  lowering.define(node.result(),
                  StoredTensor{lowering.emit().binary(Binary::Greater, zero, value), real.data.layout});
  return {};
}

Status lowerEq(Lowering& l, const ir::Node& n) {
  return lowerCompare(l, n, Binary::Equal, false, false);
}
Status lowerNe(Lowering& l, const ir::Node& n) {
  return lowerCompare(l, n, Binary::Equal, false, true);
}
Status lowerGt(Lowering& l, const ir::Node& n) {
  return lowerCompare(l, n, Binary::Greater, false, false);
}
Status lowerGe(Lowering& l, const ir::Node& n) {
  return lowerCompare(l, n, Binary::GreaterEqual, false, false);
}
Status lowerLt(Lowering& l, const ir::Node& n) {
  return lowerCompare(l, n, Binary::Greater, true, false);
}
Status lowerLe(Lowering& l, const ir::Node& n) {
  return lowerCompare(l, n, Binary::GreaterEqual, true, false);
}

/// Logical and bitwise operators; on bool tensors they are identical.
Status lowerBits(Lowering& lowering, const ir::Node& node, Binary onBool, Binary onIntegers) {
  CARINA_TRY(const Lowering::Aligned aligned, integerPair(lowering, node));
  const Binary op = aligned.values[0]->dtype() == DType::Bool ? onBool : onIntegers;
  lowering.define(
      node.result(),
      StoredTensor{lowering.emit().binary(op, aligned.values[0], aligned.values[1]), aligned.layout});
  return {};
}

Status lowerAnd(Lowering& l, const ir::Node& n) {
  return lowerBits(l, n, Binary::LogicalAnd, Binary::BitwiseAnd);
}
Status lowerOr(Lowering& l, const ir::Node& n) {
  return lowerBits(l, n, Binary::LogicalOr, Binary::BitwiseOr);
}
Status lowerXor(Lowering& l, const ir::Node& n) {
  return lowerBits(l, n, Binary::LogicalXor, Binary::BitwiseXor);
}

Status lowerNot(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const StoredTensor data, lowering.integers(node.operands()[0]));
  const Unary op = data.dtype() == DType::Bool ? Unary::LogicalNot : Unary::BitwiseNot;
  lowering.define(node.result(), StoredTensor{lowering.emit().unary(op, data.value), data.layout});
  return {};
}

/// Shifts of integers by a number.
Status lowerShiftNumber(Lowering& lowering, const ir::Node& node, Binary op) {
  CARINA_TRY(const StoredTensor data, lowering.integers(node.operands()[0]));
  const int64_t amount = ir::scalarInt(node.attribute(0));
  if (amount < 0 || amount >= 8 * dtypeSize(data.dtype()))
    return fail(Code::NoIntegerForm, "the shift count {} is out of range for the type", amount)
        .withRemedy("shift by less than the width");
  ir::Value* by = lowering.emit().reshape(lowering.emit().scalar(data.dtype(), amount),
                                          Shape(data.value->shape().size(), 1));
  lowering.define(node.result(), StoredTensor{lowering.emit().binary(op, data.value, by), data.layout});
  return {};
}

/// floor(x / divisor) of int32: x / divisor rounded to nearest, and one less where that is more. The factor
/// of a RESCALE has 31 bits: for three or more, it is never off by one in the other direction.
Status lowerFlooredByNumber(Lowering& lowering, const ir::Node& node, int64_t divisor) {
  CARINA_RETURN_IF_ERROR(checkInt32(divisor, "the divisor"));
  CARINA_TRY(StoredTensor data, lowering.integers(node.operands()[0]));
  Emitter& emit = lowering.emit();
  CARINA_TRY(ir::Value* const nearest,
             emit.rescale(data.value, DType::Int32, 0, 0, std::array{1.0 / static_cast<double>(divisor)}));
  ir::Value* whole = emit.binary(Binary::Mul, nearest, emit.number(divisor, nearest));
  ir::Value* rest = emit.binary(Binary::Sub, data.value, whole);
  ir::Value* over = emit.binary(Binary::ArithmeticRightShift, rest, emit.number(31, rest));
  lowering.define(node.result(), StoredTensor{emit.binary(Binary::Add, nearest, over), data.layout});
  return {};
}

/// Integer quotients truncated towards zero, or floored by a number; other modes are derived from them.
Status lowerDivMode(Lowering& lowering, const ir::Node& node) {
  const auto mode = ir::cast<aten::DivTensorMode>(&node).roundingMode();
  if (lowering.isFloatValue(node.result())) return lowerWholeQuotient(lowering, node, mode == "trunc");
  const ir::Value* divisor = node.operands()[1];
  if (mode == "floor" && divisor->isConstant() && divisor->numElements() == 1 &&
      divisor->constant().integerAt(0) >= 3 && divisor->rank() <= node.operands()[0]->rank())
    return lowerFlooredByNumber(lowering, node, divisor->constant().integerAt(0));
  if (mode != "trunc")
    return fail(Code::NoIntegerForm, "{} is not supported on the NPU for these operands", node.opName())
        .withRemedy("divide with rounding_mode='trunc', or divide floats");
  return integerArithmetic(lowering, node, Binary::IntDiv);
}

/// Shifts of integers by integers of the same type.
template <Binary kOp>
Status lowerShift(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const Lowering::Aligned pair, integerPair(lowering, node));
  if (pair.values[0]->dtype() != pair.values[1]->dtype())
    return fail(Code::NoIntegerForm, "the shift count and the shifted value have different types")
        .withRemedy("convert the shift count to the type of the value");
  lowering.define(node.result(),
                  StoredTensor{lowering.emit().binary(kOp, pair.values[0], pair.values[1]), pair.layout});
  return {};
}

Status lowerShiftLeft(Lowering& l, const ir::Node& n) {
  return lowerShiftNumber(l, n, Binary::LeftShift);
}
Status lowerShiftRight(Lowering& l, const ir::Node& n) {
  return lowerShiftNumber(l, n, Binary::ArithmeticRightShift);
}

Status lowerWhere(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const StoredTensor condition, lowering.integers(node.operands()[0]));
  if (condition.dtype() != DType::Bool)
    return fail(Code::NoIntegerForm, "the condition of where has type {}, expected bool",
                dtypeName(condition.dtype()))
        .withRemedy("convert it to bool first");
  const std::span<ir::Value* const> choices(node.operands().data() + 1, 2);
  std::vector<StoredTensor> data{condition};
  std::optional<Codes> codes;
  if (lowering.isFloatValue(node.result())) {
    CARINA_TRY(SameCodes same, sameCodes(lowering, choices, node.result()));
    data.insert(data.end(), same.data.begin(), same.data.end());
    codes = same.codes;
  } else {
    for (const ir::Value* choice : choices) {
      CARINA_TRY(StoredTensor operand, lowering.integers(choice));
      data.push_back(std::move(operand));
    }
  }
  const Lowering::Aligned aligned = lowering.align(std::move(data), node.result()->shape());
  StoredTensor result{lowering.emit().select(aligned.values[0], aligned.values[1], aligned.values[2]),
                      aligned.layout};
  if (codes)
    lowering.define(
        node.result(),
        QuantizedValue{std::move(result), {codes->scale}, codes->zeroPoint, false, {}, {}, {}, {}});
  else
    lowering.define(node.result(), std::move(result));
  return {};
}

}  // namespace

void addPointwiseRules(Rules& rules) {
  rules[&aten::AddTensor::def()] = lowerAdd;
  rules[&aten::SubTensor::def()] = lowerSub;
  rules[&aten::RsubTensor::def()] = lowerRsub;
  rules[&aten::MulTensor::def()] = lowerMul;
  // Codes are never NaN, so fmax and fmin are the same as maximum and minimum.
  rules[&aten::Maximum::def()] = rules[&aten::Fmax::def()] = lowerMaximum;
  rules[&aten::Minimum::def()] = rules[&aten::Fmin::def()] = lowerMinimum;
  rules[&aten::Isfinite::def()] = lowerIsCode;
  rules[&aten::Isnan::def()] = rules[&aten::Isinf::def()] = rules[&aten::Isposinf::def()] =
      rules[&aten::Isneginf::def()] = lowerIsNoCode;
  rules[&aten::Signbit::def()] = lowerSignbit;
  rules[&aten::EqTensor::def()] = lowerEq;
  rules[&aten::NeTensor::def()] = lowerNe;
  rules[&aten::GtTensor::def()] = lowerGt;
  rules[&aten::GeTensor::def()] = lowerGe;
  rules[&aten::LtTensor::def()] = lowerLt;
  rules[&aten::LeTensor::def()] = lowerLe;
  rules[&aten::LogicalAnd::def()] = rules[&aten::BitwiseAndTensor::def()] = lowerAnd;
  rules[&aten::LogicalOr::def()] = rules[&aten::BitwiseOrTensor::def()] = lowerOr;
  rules[&aten::LogicalXor::def()] = rules[&aten::BitwiseXorTensor::def()] = lowerXor;
  rules[&aten::LogicalNot::def()] = rules[&aten::BitwiseNot::def()] = lowerNot;
  rules[&aten::BitwiseLeftShiftTensorScalar::def()] = lowerShiftLeft;
  rules[&aten::BitwiseRightShiftTensorScalar::def()] = lowerShiftRight;
  rules[&aten::BitwiseLeftShiftTensor::def()] = lowerShift<Binary::LeftShift>;
  rules[&aten::BitwiseRightShiftTensor::def()] = lowerShift<Binary::ArithmeticRightShift>;
  rules[&aten::DivTensorMode::def()] = lowerDivMode;
  rules[&aten::WhereSelf::def()] = lowerWhere;
}

}  // namespace carina::lower
