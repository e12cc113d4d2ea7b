// SPDX-License-Identifier: Apache-2.0
// Operands of different types, and numbers combined with integers, are converted to one type, so that the
// remaining operators have one form on the NPU.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "aten/ops.hpp"
#include "aten/promotion.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

using aten::OpId;

ir::Value* converted(const ir::Builder& b, ir::Value* value, DType dtype) {
  if (value->dtype() == dtype) return value;
  if (value->isConstant()) return b.constant(convert(value->constant(), dtype));
  return aten::PrivateToCopy::create(b, value, dtype);
}

/// A constant of rank 0; numbers outside the type's range are clamped to it.
ir::Value* integer(ir::Builder& b, int64_t value, DType dtype) {
  return b.constant(convert(Tensor::scalar(std::clamp(value, integerMin(dtype), integerMax(dtype))), dtype));
}

/// Numbers of integer operators are integers; the range of others is cut to what int64 holds.
int64_t wholeNumber(const ir::Attribute& number) {
  constexpr double kMost = 0x1p62;
  const auto* real = std::get_if<double>(&number);
  return real ? static_cast<int64_t>(std::clamp(*real, -kMost, kMost)) : ir::scalarInt(number);
}

/// Index of the first of two operands that are computed in a common type.
std::optional<size_t> firstOfPair(const ir::Node& node) {
  if (!aten::isOperator(&node)) return std::nullopt;
  switch (aten::opId(&node)) {
    case OpId::AddTensor:
    case OpId::SubTensor:
    case OpId::RsubTensor:
    case OpId::MulTensor:
    case OpId::DivTensor:
    case OpId::DivTensorMode:
    case OpId::FloorDivide:
    case OpId::RemainderTensor:
    case OpId::FmodTensor:
    case OpId::Atan2:
    case OpId::Maximum:
    case OpId::Minimum:
    case OpId::EqTensor:
    case OpId::NeTensor:
    case OpId::LtTensor:
    case OpId::LeTensor:
    case OpId::GtTensor:
    case OpId::GeTensor:
    case OpId::BitwiseAndTensor:
    case OpId::BitwiseOrTensor:
    case OpId::BitwiseXorTensor:
      return 0;
    case OpId::WhereSelf:
      return 1;
    default:
      return std::nullopt;
  }
}

/// Two operands in the type that PyTorch computes them in.
Result<bool> rewriteMixedTypes(ir::Node* node) {
  const auto first = firstOfPair(*node);
  if (!first) return false;
  const std::array<ir::Value*, 2> operands{node->operands()[*first], node->operands()[*first + 1]};
  CARINA_TRY(DType dtype, aten::Promotion().add(operands[0]).add(operands[1]).type());
  const bool real = ir::isa<aten::DivTensor>(node) || ir::isa<aten::Atan2>(node);
  if (real) dtype = aten::floatTypeOf(dtype);
  if (operands[0]->dtype() == dtype && operands[1]->dtype() == dtype) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  for (size_t i = 0; i < 2; ++i) node->setOperand(*first + i, converted(b, operands[i], dtype));
  return true;
}

/// Parts of a concatenation in the type of the whole.
Result<bool> rewriteMixedParts(ir::Node* node) {
  if (!ir::isa<aten::Cat>(node) && !ir::isa<aten::Stack>(node)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  bool changed = false;
  for (size_t i = 0; i < node->operands().size(); ++i) {
    ir::Value* part = node->operands()[i];
    if (part->dtype() == node->result()->dtype()) continue;
    node->setOperand(i, converted(b, part, node->result()->dtype()));
    changed = true;
  }
  return changed;
}

/// Integer tensor and number: the number becomes a constant, or the tensor float if the number is.
Result<bool> rewriteIntegerAndNumber(ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().size() != 1 || node->results().size() != 1) return false;
  ir::Value* self = node->operands()[0];
  const DType dtype = node->result()->dtype();
  if (isFloat(self->dtype())) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* result = nullptr;
  const auto product = [](const ir::Attribute& x, const ir::Attribute& y) {
    return static_cast<int64_t>(static_cast<uint64_t>(wholeNumber(x)) *
                                static_cast<uint64_t>(wholeNumber(y)));
  };
  const auto other = [&] { return integer(b, wholeNumber(node->attribute(0)), dtype); };
  switch (aten::opId(node)) {
    case OpId::AddScalar:
    case OpId::SubScalar:
    case OpId::RsubScalar:
    case OpId::MulScalar:
    case OpId::DivScalar:
      if (isFloat(dtype)) {
        node->setOperand(0, converted(b, self, dtype));
        return true;
      }
      if (self->dtype() != dtype || dtype == DType::Bool) return false;
      if (const auto add = ir::dynCast<aten::AddScalar>(node))
        result = aten::AddTensor::create(b, self, integer(b, product(add.other(), add.alpha()), dtype));
      else if (const auto sub = ir::dynCast<aten::SubScalar>(node))
        result = aten::SubTensor::create(b, self, integer(b, product(sub.other(), sub.alpha()), dtype));
      else if (const auto rsub = ir::dynCast<aten::RsubScalar>(node);
               rsub && ir::scalarReal(rsub.alpha()) == 1)
        result = aten::SubTensor::create(b, integer(b, wholeNumber(rsub.other()), dtype), self);
      else if (ir::isa<aten::MulScalar>(node))
        result = aten::MulTensor::create(b, self, other());
      break;
    case OpId::BitwiseAndScalar:
      if (self->dtype() == dtype) result = aten::BitwiseAndTensor::create(b, self, other());
      break;
    case OpId::BitwiseOrScalar:
      if (self->dtype() == dtype) result = aten::BitwiseOrTensor::create(b, self, other());
      break;
    case OpId::BitwiseXorScalar:
      if (self->dtype() == dtype) result = aten::BitwiseXorTensor::create(b, self, other());
      break;
    default:
      break;
  }
  if (!result) return false;
  replaceNode(node, result);
  return true;
}

/// A constant of one integer that is at least 1.
std::optional<int64_t> positiveNumber(const ir::Value* value) {
  if (!value->isConstant() || value->numElements() != 1 || value->constant().integerAt(0) < 1)
    return std::nullopt;
  return value->constant().integerAt(0);
}

/// Whether x / y of integers, floored, has a form on every NPU: int32 (or int64) divided by a positive
/// number.
bool hasFlooredForm(const ir::Value* x, const ir::Value* y) {
  return positiveNumber(y) && (x->dtype() == DType::Int32 || x->dtype() == DType::Int64) &&
         y->rank() <= x->rank();
}

/// Quotients and remainders of integers by a positive number: shifts and masks for powers of two, otherwise
/// floored quotients.
ir::Value* rewriteDivisionByPositive(ir::Builder& b, ir::Node* node) {
  const auto mode = ir::dynCast<aten::DivTensorMode>(node);
  const bool remainder = ir::isa<aten::RemainderTensor>(node),
             truncated = mode && mode.roundingMode() == "trunc";
  const bool floored = ir::isa<aten::FloorDivide>(node) || (mode && mode.roundingMode() == "floor");
  if (!remainder && !floored && !truncated) return nullptr;
  ir::Value *x = node->operands()[0], *y = node->operands()[1];
  const DType dtype = node->result()->dtype();
  const auto divisor = positiveNumber(y);
  if (!isInteger(dtype) || x->dtype() != dtype || !divisor || y->rank() > x->rank()) return nullptr;
  const bool isPower = (*divisor & (*divisor - 1)) == 0;
  if (!isPower && (!hasFlooredForm(x, y) || (mode && floored))) return nullptr;
  if (isPower && remainder) return aten::BitwiseAndScalar::create(b, x, *divisor - 1);
  if (truncated) {  // the floored quotient, of a negative number plus divisor - 1
    ir::Value* negative = converted(b, aten::LtTensor::create(b, x, integer(b, 0, dtype)), dtype);
    x = aten::AddTensor::create(b, x, aten::MulTensor::create(b, negative, integer(b, *divisor - 1, dtype)));
  }
  if (isPower) {
    const int64_t bits = std::countr_zero(static_cast<uint64_t>(*divisor));
    return aten::BitwiseRightShiftTensorScalar::create(b, x, bits);
  }
  ir::Value* quotient = aten::DivTensorMode::create(b, x, y, "floor");
  return remainder ? aten::SubTensor::create(b, x, aten::MulTensor::create(b, quotient, y)) : quotient;
}

/// Floored quotients and remainders of integers from truncated ones: one less if the remainder's sign differs
/// from the divisor's.
ir::Value* rewriteIntegerDivision(ir::Builder& b, ir::Node* node) {
  const auto mode = ir::dynCast<aten::DivTensorMode>(node);
  const bool remainder = ir::isa<aten::RemainderTensor>(node);
  if (!ir::isa<aten::FloorDivide>(node) && !remainder && !(mode && mode.roundingMode() == "floor"))
    return nullptr;
  ir::Value* x = node->operands()[0];
  ir::Value* y = node->operands()[1];
  const DType dtype = node->result()->dtype();
  if (!isInteger(dtype) || x->dtype() != dtype || y->dtype() != dtype || hasFlooredForm(x, y)) return nullptr;
  const auto below = [&](ir::Value* v) { return aten::LtTensor::create(b, v, integer(b, 0, dtype)); };
  const auto minus = [&](ir::Value* v, ir::Value* w) { return aten::SubTensor::create(b, v, w); };
  ir::Value* quotient = aten::DivTensorMode::create(b, x, y, "trunc");
  ir::Value* rest = minus(x, aten::MulTensor::create(b, quotient, y));
  ir::Value* uneven = aten::NeTensor::create(b, rest, integer(b, 0, dtype));
  ir::Value* apart = aten::LogicalXor::create(b, below(rest), below(y));
  ir::Value* over = converted(b, aten::LogicalAnd::create(b, uneven, apart), dtype);
  return remainder ? aten::AddTensor::create(b, rest, aten::MulTensor::create(b, over, y))
                   : minus(quotient, over);
}

/// Integers divided by a number, which becomes a tensor.
Result<bool> rewriteIntegerDivisionByNumber(ir::Node* node) {
  const auto mode = ir::dynCast<aten::DivScalarMode>(node);
  const auto floored = ir::dynCast<aten::FloorDivideScalar>(node);
  const auto remainder = ir::dynCast<aten::RemainderScalar>(node);
  if ((!mode && !floored && !remainder) || isFloat(node->operands()[0]->dtype())) return false;
  ir::Value* x = node->operands()[0];
  const DType dtype = node->result()->dtype();
  ir::Builder b = ir::Builder::beforeNode(node);
  if (isFloat(dtype)) {
    node->setOperand(0, converted(b, x, dtype));
    return true;
  }
  if (x->dtype() != dtype || !isInteger(dtype) || (mode && !mode.roundingMode())) return false;
  ir::Value* y = integer(b,
                         wholeNumber(mode      ? mode.other()
                                     : floored ? floored.other()
                                               : remainder.other()),
                         dtype);
  replaceNode(node, remainder ? aten::RemainderTensor::create(b, x, y)
                              : aten::DivTensorMode::create(b, x, y, mode ? mode.roundingMode() : "floor"));
  return true;
}

/// Tensor bounds become maximum and minimum.
ir::Value* rewriteClampTensor(ir::Builder& b, ir::Node* node) {
  ir::Value* low = nullptr;
  ir::Value* high = nullptr;
  if (const auto both = ir::dynCast<aten::ClampTensor>(node)) {
    low = both.min();
    high = both.max();
  } else if (const auto from = ir::dynCast<aten::ClampMinTensor>(node)) {
    low = from.min();
  } else if (const auto to = ir::dynCast<aten::ClampMaxTensor>(node)) {
    high = to.max();
  } else {
    return nullptr;
  }
  if (isQuantizedAsUnit(*node)) return nullptr;
  const DType dtype = node->result()->dtype();
  ir::Value* result = converted(b, node->operands()[0], dtype);
  if (low) result = aten::Maximum::create(b, result, converted(b, low, dtype));
  if (high) result = aten::Minimum::create(b, result, converted(b, high, dtype));
  if (result->shape() != node->result()->shape() || result == node->operands()[0]) return nullptr;
  return result;
}

/// uint8 values are converted before they are moved, so that the NPU can read the bytes of an input image
/// directly.
ir::Value* rewriteConversionOfMovedBytes(ir::Builder& b, ir::Node* node) {
  if (!isConversion(*node) || node->operands()[0]->dtype() != DType::UInt8) return nullptr;
  ir::Node* move = node->operands()[0]->producer();
  const DType dtype = node->result()->dtype();
  if (!move || !move->def().has(ir::kView) || move->operands().size() != 1 || move->results().size() != 1 ||
      !move->result()->hasOneUse() || move->result()->isGraphOutput() || isConversion(*move) ||
      (dtype != DType::Float32 && dtype != DType::Int32 && dtype != DType::Int64))
    return nullptr;
  ir::NodeSpec spec;
  spec.def = &move->def();
  spec.location = move->location();
  spec.operands = {{converted(b, move->operands()[0], dtype)}};
  for (size_t i = 0; i < move->def().attributes.size(); ++i) spec.attributes.push_back(move->attribute(i));
  spec.types = {{dtype, move->result()->shape()}};
  return b.create(std::move(spec))->result();
}

/// Floats as bool: whether they are nonzero.
ir::Value* rewriteTruth(ir::Builder& b, ir::Node* node) {
  if (!isConversion(*node) || node->result()->dtype() != DType::Bool) return nullptr;
  ir::Value* self = node->operands()[0];
  if (!isFloat(self->dtype())) return nullptr;
  return aten::NeTensor::create(b, self, b.constant(Tensor::zeros(self->dtype(), {})));
}

/// any and all of numbers test whether they are nonzero.
Result<bool> rewriteAnyOfNumbers(ir::Node* node) {
  const bool any = ir::isa<aten::Any>(node) || ir::isa<aten::AnyDim>(node) || ir::isa<aten::AnyDims>(node);
  const bool all = ir::isa<aten::All>(node) || ir::isa<aten::AllDim>(node) || ir::isa<aten::AllDims>(node);
  if ((!any && !all) || isQuantizedAsUnit(*node)) return false;
  ir::Value* self = node->operands()[0];
  if (self->dtype() == DType::Bool || self->dtype() == DType::UInt8) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  node->setOperand(0, aten::NeTensor::create(b, self, b.constant(Tensor::zeros(self->dtype(), {}))));
  return true;
}

/// Sums and products of booleans (dtype=torch.bool): whether any, or all, are nonzero.
ir::Value* rewriteSumOfTruths(ir::Builder& b, ir::Node* node) {
  const bool sum = ir::isa<aten::Sum>(node) || ir::isa<aten::SumDimIntList>(node);
  const bool product = ir::isa<aten::Prod>(node) || ir::isa<aten::ProdDimInt>(node);
  if ((!sum && !product) || node->result()->dtype() != DType::Bool) return nullptr;
  ir::Value* self = node->operands()[0];
  ir::Value* result = nullptr;
  if (const auto op = ir::dynCast<aten::SumDimIntList>(node); op && op.dim() && !op.dim()->empty())
    result = aten::AnyDims::create(b, self, op.dim(), op.keepdim());
  else if (const auto along = ir::dynCast<aten::ProdDimInt>(node))
    result = aten::AllDim::create(b, self, along.dim(), along.keepdim());
  else if (sum)
    result = aten::Any::create(b, self);
  else
    result = aten::All::create(b, self);
  if (result->shape() != node->result()->shape())  // a sum over all dimensions that keeps them
    result = aten::View::create(b, result, node->result()->shape());
  return result;
}

/// copy: the source in the shape and type of the tensor that it overwrites.
ir::Value* rewriteCopy(ir::Builder& b, aten::Copy op) {
  ir::Value* source = converted(b, op.src(), op->result()->dtype());
  if (source->shape() != op->result()->shape())
    source = aten::Expand::create(b, source, op->result()->shape());
  return source;
}

/// Values and indices of extremes: amax and argmax of the same operand.
template <typename Op>
ir::Value* rewriteExtremeAndIndex(ir::Builder& b, Op op) {
  if (op->result(1)->unused() || isQuantizedAsUnit(op)) return nullptr;
  constexpr bool kLargest = std::is_same_v<Op, aten::MaxDim>;
  ir::Value* values = nullptr;
  ir::Value* indices = nullptr;
  if constexpr (kLargest) {
    values = aten::Amax::create(b, op.self(), ir::Ints{op.dim()}, op.keepdim());
    indices = aten::Argmax::create(b, op.self(), op.dim(), op.keepdim());
  } else {
    values = aten::Amin::create(b, op.self(), ir::Ints{op.dim()}, op.keepdim());
    indices = aten::Argmin::create(b, op.self(), op.dim(), op.keepdim());
  }
  std::swap(indices->name, op->result(1)->name);
  op->graph().replaceAllUses(op->result(1), indices);
  return values;
}

/// one_hot: each index is compared with 0 .. classes - 1.
ir::Value* rewriteOneHot(ir::Builder& b, aten::OneHot op) {
  const int64_t classes = op->result()->shape().back();
  ir::Value* index = aten::Unsqueeze::create(b, op.self(), int64_t{-1});
  ir::Value* all = b.constant(convert(Tensor::from({classes}, numbersBelow(classes)), op.self()->dtype()));
  ir::Value* equal = aten::EqTensor::create(b, index, all);
  return converted(b, equal, op->result()->dtype());
}

}  // namespace

bool isConversion(const ir::Node& node) {
  return ir::isa<aten::ToDtype>(&node) || ir::isa<aten::ToDtypeLayout>(&node) ||
         ir::isa<aten::ToOther>(&node) || ir::isa<aten::PrivateToCopy>(&node) || ir::isa<aten::TypeAs>(&node);
}

Result<bool> rewriteHalves(ir::Node* node) {
  const auto isHalf = [](const ir::Value* value) { return value && value->dtype() == DType::Float16; };
  const auto operands = node->operands();
  return std::any_of(operands.begin(), operands.end(), isHalf) ? rewriteMixedTypes(node)
                                                               : Result<bool>(false);
}

Result<bool> rewriteReducedType(ir::Node* node) {
  if (!aten::isOperator(node)) return false;
  switch (aten::opId(node)) {
    case OpId::Sum:
    case OpId::SumDimIntList:
    case OpId::Prod:
    case OpId::ProdDimInt:
    case OpId::Cumsum:
    case OpId::Cumprod:
      break;
    default:
      return false;
  }
  ir::Value* x = node->operands()[0];
  const DType dtype = node->result()->dtype();
  if (!isFloat(x->dtype()) || isFloat(dtype)) return false;
  node->setOperand(0, converted(ir::Builder::beforeNode(node), x, dtype));
  return true;
}

void addTypeRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteMixedTypes, rewriteMixedParts, rewriteConversionOfMovedBytes, rewriteTruth,
              rewriteIntegerAndNumber, rewriteClampTensor, rewriteSumOfTruths, rewriteReducedType,
              rewriteAnyOfNumbers, rewriteDivisionByPositive, rewriteIntegerDivision,
              rewriteIntegerDivisionByNumber, rewriteCopy, rewriteExtremeAndIndex<aten::MaxDim>,
              rewriteExtremeAndIndex<aten::MinDim>, rewriteOneHot);
}

}  // namespace carina::decompose
