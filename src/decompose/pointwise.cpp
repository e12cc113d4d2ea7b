// SPDX-License-Identifier: Apache-2.0
// Pointwise composites: division, glu, masked_fill, prelu, ....
#include <algorithm>
#include <cmath>
#include <limits>

#include "aten/operator_facts.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

// Infinite fill values become finite. Calibration recognises the least float as hidden values; there is no
// such number for the largest ones, which would ruin the observed range, so that 255 stands for them.
constexpr double kMaxNegative = std::numeric_limits<float>::lowest(), kMaxPositive = 255;

double finite(double value) {
  return std::isinf(value) ? (value < 0 ? kMaxNegative : kMaxPositive) : value;
}

bool isGiven(const ir::Attribute& value) {
  return !std::holds_alternative<std::monostate>(value);
}

/// The reciprocal of a divisor. max(y, 1e-12) prevents division by lengths of zero: the dividend is zero
/// there, so the divisor may as well be infinite, whereas reciprocals of 1e12 would leave no range for the
/// others.
ir::Value* reciprocalOf(ir::Builder& b, ir::Value* divisor) {
  constexpr double kGuard = 1e-6;
  ir::Value* length = nullptr;
  ir::Attribute least;
  if (const auto above = ir::producerAs<aten::ClampMin>(divisor)) {
    length = above.self();
    least = above.min();
  } else if (const auto clamp = ir::producerAs<aten::Clamp>(divisor);
             clamp && !isGiven(clamp.max()) && isGiven(clamp.min())) {
    length = clamp.self();
    least = clamp.min();
  }
  if (length && ir::scalarReal(least) > 0 && ir::scalarReal(least) <= kGuard) {
    ir::Value* none = aten::LeTensor::create(b, length, number(b, ir::scalarReal(least), 0));
    ir::Value* infinite = number(b, std::numeric_limits<double>::infinity(), 0);
    divisor = aten::WhereSelf::create(b, none, infinite, length);
  }
  return aten::Reciprocal::create(b, divisor);
}

/// Whether a constant's numbers are so large that adding other numbers does not change them: masks, and the
/// initial values of running maxima (-1e38). They would use up the whole range of the sum.
bool absorbs(const ir::Value* value, bool negative) {
  constexpr float kLeast = 1e30F;
  if (!value->isConstant() || value->dtype() != DType::Float32 || value->numElements() == 0) return false;
  const auto numbers = value->constant().as<float>();
  return std::all_of(numbers.begin(), numbers.end(), [&](float x) { return x <= -kLeast; }) ||
         (!negative && std::all_of(numbers.begin(), numbers.end(), [&](float x) { return x >= kLeast; }));
}

/// c + x = c and max(c, x) = x for such a constant, c < 0.
ir::Value* rewriteAbsorbed(ir::Builder& b, ir::Node* node) {
  const bool sum = ir::isa<aten::AddTensor>(node), difference = ir::isa<aten::SubTensor>(node);
  if ((!sum && !difference && !ir::isa<aten::Maximum>(node)) || isQuantizedAsUnit(*node)) return nullptr;
  const ir::Type& type = node->result()->type;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    ir::Value *constant = node->operands()[i], *other = node->operands()[1 - i];
    if (!absorbs(constant, !sum && !difference) || other->isConstant() || other->dtype() != type.dtype)
      continue;
    const bool maximum = !sum && !difference;
    if (maximum) return other->type == type ? other : aten::Expand::create(b, other, type.shape).output();
    const bool negated = difference && i == 1;
    if (ir::scalarReal(node->attribute(0)) != 1) return nullptr;
    ir::Value* result = negated ? aten::Neg::create(b, constant).output() : constant;
    return aten::Expand::create(b, result, type.shape);
  }
  return nullptr;
}

/// x / y = x * (1 / y); the reciprocal of a constant divisor is constant.
ir::Value* rewriteDivision(ir::Builder& b, ir::Node* node) {
  if (!ir::isa<aten::DivTensor>(node)) return nullptr;
  if (isQuantizedAsUnit(*node) || node->operands()[0]->dtype() != DType::Float32 ||
      node->operands()[1]->dtype() != DType::Float32) {
    return nullptr;
  }
  ir::Value* divisor = node->operands()[1];
  if (ir::Value* narrow = expandedFrom(divisor); narrow && node->operands()[0]->type == node->result()->type)
    divisor = narrow;  // the product broadcasts it
  return aten::MulTensor::create(b, node->operands()[0], reciprocalOf(b, divisor));
}

/// The first half times the sigmoid of the second.
ir::Value* rewriteGlu(ir::Builder& b, aten::Glu op) {
  if (isQuantizedAsUnit(op)) return nullptr;
  const int64_t dim = wrapped(op.dim(), op.self()->rank());
  const int64_t half = op.self()->dim(dim) / 2;
  const auto part = [&](int64_t from) {
    return aten::SliceTensor::create(b, op.self(), dim, from, from + half);
  };
  ir::Value* first = part(0);
  ir::Value* gate = aten::Sigmoid::create(b, part(half));
  return aten::MulTensor::create(b, first, gate);
}

/// where(mask, value, x) with a constant value.
ir::Value* rewriteMaskedFill(ir::Builder& b, ir::Node* node) {
  if (!ir::isa<aten::MaskedFillScalar>(node) && !ir::isa<aten::MaskedFillTensor>(node)) return nullptr;
  if (isQuantizedAsUnit(*node) || node->operands()[0]->dtype() != DType::Float32) return nullptr;
  ir::Value* fill = nullptr;
  if (const auto op = ir::dynCast<aten::MaskedFillScalar>(node))
    fill = number(b, finite(ir::scalarReal(op.value())), 0);
  else if (const auto tensor = ir::dynCast<aten::MaskedFillTensor>(node)) {
    fill = tensor.value()->isConstant() ? number(b, finite(tensor.value()->constant().realAt(0)), 0)
                                        : tensor.value();
    if (fill->dtype() != DType::Float32) return nullptr;
  } else {
    return nullptr;
  }
  return aten::WhereSelf::create(b, node->operands()[1], fill, node->operands()[0]);
}

/// max(x, w * x) if no slope is above 1, min(x, w * x) if none is below: two operations with one range.
/// Otherwise x + (w - 1) * min(x, 0). A single weight is leaky_relu.
ir::Value* rewritePrelu(ir::Builder& b, aten::Prelu op) {
  if (isQuantizedAsUnit(op) || !op.weight()->isConstant()) return nullptr;
  const Tensor& slopes = op.weight()->constant();
  if (slopes.numElements() == 1) return aten::LeakyRelu::create(b, op.self(), slopes.realAt(0));
  ir::Ints shape(op.self()->shape().size(), 1);
  shape[shape.size() > 1 ? 1 : 0] = slopes.numElements();
  ir::Value* weight = aten::View::create(b, op.weight(), shape);
  double least = slopes.realAt(0), most = least;
  for (int64_t n = 1; n < slopes.numElements(); ++n) {
    least = std::min(least, slopes.realAt(n));
    most = std::max(most, slopes.realAt(n));
  }
  if (most <= 1 || least >= 1) {
    ir::Value* scaled = aten::MulTensor::create(b, op.self(), weight);
    return most <= 1 ? aten::Maximum::create(b, op.self(), scaled)
                     : aten::Minimum::create(b, op.self(), scaled);
  }
  ir::Value* negative = aten::ClampMax::create(b, op.self(), 0.0);
  ir::Value* rest = aten::SubScalar::create(b, weight, 1.0);
  return aten::AddTensor::create(b, op.self(), aten::MulTensor::create(b, negative, rest));
}

/// self + value * a * b, self + value * a / b
ir::Value* rewriteFused(ir::Builder& b, ir::Node* node) {
  ir::Value* product = nullptr;
  double factor = 1;
  if (isQuantizedAsUnit(*node)) return nullptr;
  if (const auto multiply = ir::dynCast<aten::Addcmul>(node)) {
    product = aten::MulTensor::create(b, multiply.tensor1(), multiply.tensor2());
    factor = ir::scalarReal(multiply.value());
  } else if (const auto divide = ir::dynCast<aten::Addcdiv>(node)) {
    product = aten::DivTensor::create(b, divide.tensor1(), divide.tensor2());
    factor = ir::scalarReal(divide.value());
  } else {
    return nullptr;
  }
  return aten::AddTensor::create(b, node->operands()[0], product, factor);
}

/// where() with numbers: constants of the result's type.
ir::Value* rewriteWhereNumbers(ir::Builder& b, ir::Node* node) {
  const DType dtype = node->result()->dtype();
  const auto constant = [&](const ir::Attribute& number) -> ir::Value* {
    return b.constant(convert(isFloat(dtype)
                                  ? Tensor::scalar(static_cast<float>(finite(ir::scalarReal(number))))
                                  : Tensor::scalar(ir::scalarInt(number)),
                              dtype));
  };
  ir::Value* yes = nullptr;
  ir::Value* no = nullptr;
  if (const auto other = ir::dynCast<aten::WhereScalarOther>(node)) {
    yes = other.self();
    no = constant(other.other());
  } else if (const auto self = ir::dynCast<aten::WhereScalarSelf>(node)) {
    yes = constant(self.self());
    no = self.other();
  } else if (const auto both = ir::dynCast<aten::WhereScalar>(node)) {
    yes = constant(both.self());
    no = constant(both.other());
  } else {
    return nullptr;
  }
  if (yes->dtype() != no->dtype()) return nullptr;
  return aten::WhereSelf::create(b, node->operands()[0], yes, no);
}

/// where(isnan(x), number, x) and the same for infinities: nan_to_num, which excludes the number from x's
/// range.
ir::Value* rewriteNanToNum(ir::Builder& b, aten::WhereSelf op) {
  if (!op.self()->isConstant() || op.self()->numElements() != 1 || !op.condition()->producer() ||
      op.other()->dtype() != DType::Float32 || op.other()->type != op->result()->type)
    return nullptr;
  const ir::Node* test = op.condition()->producer();
  const bool nan = ir::isa<aten::Isnan>(test), high = ir::isa<aten::Isposinf>(test);
  if (!nan && !high && !ir::isa<aten::Isneginf>(test)) return nullptr;
  const auto inner = ir::producerAs<aten::NanToNum>(op.other());
  ir::Value* x = inner && op.other()->hasOneUse() ? inner.self() : op.other();
  if (test->operands()[0] != x) return nullptr;
  constexpr double kMost = std::numeric_limits<float>::max(),
                   kInfinity = std::numeric_limits<double>::infinity();
  const bool fresh = x == op.other();
  double ofNan = fresh ? std::nan("") : inner.nan().value_or(0);
  double ofHigh = fresh ? kInfinity : inner.posinf().value_or(kMost);
  double ofLow = fresh ? -kInfinity : inner.neginf().value_or(-kMost);
  (nan ? ofNan : high ? ofHigh : ofLow) = op.self()->constant().realAt(0);
  return aten::NanToNum::create(b, x, ofNan, ofHigh, ofLow);
}

/// tril, triu: where with a constant mask.
ir::Value* rewriteTriangle(ir::Builder& b, ir::Node* node) {
  const auto lower = ir::dynCast<aten::Tril>(node);
  const auto upper = ir::dynCast<aten::Triu>(node);
  if ((!lower && !upper) || isQuantizedAsUnit(*node)) return nullptr;
  const ir::Value* x = node->operands()[0];
  const int64_t rows = x->dim(x->rank() - 2), columns = x->dim(x->rank() - 1);
  Tensor mask = Tensor::zeros(DType::Bool, {rows, columns});
  const auto keep = mask.mutableAs<uint8_t>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      keep[static_cast<size_t>(i * columns + j)] =
          lower ? j <= i + lower.diagonal() : j >= i + upper.diagonal();
    }
  }
  ir::Value* zero = b.constant(Tensor::zeros(x->dtype(), {}));
  return aten::WhereSelf::create(b, b.constant(std::move(mask)), node->operands()[0], zero);
}

/// sqrt(sum(x^2)), sum(|x|), max(|x|)
ir::Value* rewriteVectorNorm(ir::Builder& b, aten::LinalgVectorNorm op) {
  if (isQuantizedAsUnit(op) || op.self()->dtype() != DType::Float32) return nullptr;
  const double order = ir::scalarReal(op.ord());
  if (order == 2) {
    ir::Value* square = aten::MulTensor::create(b, op.self(), op.self());
    return aten::Sqrt::create(b, aten::SumDimIntList::create(b, square, op.dim(), op.keepdim()));
  }
  const bool largest = std::isinf(order) && order > 0;
  if (order != 1 && !largest) return nullptr;
  ir::Value* magnitude = aten::Abs::create(b, op.self());
  if (largest) return aten::Amax::create(b, magnitude, op.dim().value_or(ir::Ints{}), op.keepdim());
  return aten::SumDimIntList::create(b, magnitude, op.dim(), op.keepdim());
}

/// A comparison with positive or negative infinity, as tests for NaN and infinities.
ir::Value* againstInfinity(ir::Builder& b, aten::OpId id, ir::Value* x, bool positive) {
  using aten::OpId;
  ir::Value* same = positive ? aten::Isposinf::create(b, x) : aten::Isneginf::create(b, x);
  ir::Value* nan = aten::Isnan::create(b, x);
  const auto inverted = [&](ir::Value* v) { return aten::LogicalNot::create(b, v); };
  if (id == OpId::EqScalar || id == (positive ? OpId::GeScalar : OpId::LeScalar)) return same;
  if (id == OpId::NeScalar) return inverted(same);
  if (id == (positive ? OpId::LeScalar : OpId::GeScalar)) return inverted(nan);
  if (id == (positive ? OpId::LtScalar : OpId::GtScalar))
    return inverted(aten::LogicalOr::create(b, same, nan));
  return aten::LogicalAnd::create(b, same, nan);  // always false
}

/// A comparison with a number becomes one with a constant of the same type and range.
ir::Value* rewriteCompareNumber(ir::Builder& b, ir::Node* node) {
  using aten::OpId;
  if (!aten::isOperator(node) || node->operands().size() != 1 || isQuantizedAsUnit(*node)) return nullptr;
  const OpId id = aten::opId(node);
  if (id != OpId::EqScalar && id != OpId::NeScalar && id != OpId::LtScalar && id != OpId::LeScalar &&
      id != OpId::GtScalar && id != OpId::GeScalar) {
    return nullptr;
  }
  const ir::Value* self = node->operands()[0];
  if (self->dtype() == DType::Bool ||
      (isInteger(self->dtype()) && std::holds_alternative<double>(node->attribute(0))))
    return nullptr;
  const double limit = ir::scalarReal(node->attribute(0));
  ir::Value* other = b.constant(convert(
      isFloat(self->dtype()) ? Tensor::scalar(limit) : Tensor::scalar(ir::scalarInt(node->attribute(0))),
      self->dtype()));
  ir::Value* x = node->operands()[0];
  // Not a comparison of codes: the largest one represents a finite number.
  if (std::isinf(limit)) return againstInfinity(b, id, x, limit > 0);
  switch (id) {
    case OpId::EqScalar:
      return aten::EqTensor::create(b, x, other);
    case OpId::NeScalar:
      return aten::NeTensor::create(b, x, other);
    case OpId::LtScalar:
      return aten::LtTensor::create(b, x, other);
    case OpId::LeScalar:
      return aten::LeTensor::create(b, x, other);
    case OpId::GtScalar:
      return aten::GtTensor::create(b, x, other);
    default:
      return aten::GeTensor::create(b, x, other);
  }
}

/// Results that do not depend on their operand's values.
ir::Value* rewriteConstantLike(ir::Builder& b, ir::Node* node) {
  std::optional<double> value;
  if (const auto full = ir::dynCast<aten::FullLike>(node))
    value = ir::scalarReal(full.fillValue());
  else if (const auto filled = ir::dynCast<aten::NewFull>(node))
    value = ir::scalarReal(filled.fillValue());
  else if (ir::isa<aten::ZerosLike>(node) || ir::isa<aten::NewZeros>(node))
    value = 0;
  else if (ir::isa<aten::OnesLike>(node) || ir::isa<aten::NewOnes>(node))
    value = 1;
  if (!value) return nullptr;
  Tensor reals = Tensor::uninitialized(DType::Float64, node->result()->shape());
  const auto elements = reals.mutableAs<double>();
  std::fill(elements.begin(), elements.end(), *value);
  return b.constant(convert(reals, node->result()->dtype()));
}

/// Division without a rounding mode.
ir::Value* rewriteUnroundedDivision(ir::Builder& b, ir::Node* node) {
  const auto mode = ir::dynCast<aten::DivTensorMode>(node);
  if (!mode || mode.roundingMode() || isQuantizedAsUnit(*node)) return nullptr;
  ir::Value* x = node->operands()[0];
  ir::Value* y = node->operands()[1];
  if (x->dtype() != DType::Float32 || y->dtype() != DType::Float32) return nullptr;
  return aten::DivTensor::create(b, x, y);
}

/// floor(x / y), trunc(x / y) of a float tensor and a number.
ir::Value* rewriteWholeDivisionByNumber(ir::Builder& b, ir::Node* node) {
  const auto mode = ir::dynCast<aten::DivScalarMode>(node);
  const auto floored = ir::dynCast<aten::FloorDivideScalar>(node);
  if ((!mode && !floored) || isQuantizedAsUnit(*node)) return nullptr;
  ir::Value* x = node->operands()[0];
  if (x->dtype() != DType::Float32) return nullptr;
  ir::Value* quotient = aten::DivScalar::create(b, x, mode ? mode.other() : floored.other());
  const std::string rounding = mode ? mode.roundingMode().value_or("") : "floor";
  if (rounding == "floor")
    quotient = aten::Floor::create(b, quotient);
  else if (rounding == "trunc")
    quotient = aten::Trunc::create(b, quotient);
  return quotient;
}

/// The product of x / max(|x|, eps) and y / max(|y|, eps), summed over one dimension.
ir::Value* rewriteCosineSimilarity(ir::Builder& b, aten::CosineSimilarity op) {
  if (isQuantizedAsUnit(op) || op.x1()->dtype() != DType::Float32 || op.x2()->dtype() != DType::Float32) {
    return nullptr;
  }
  const auto shape = broadcastShapes(op.x1()->shape(), op.x2()->shape());
  if (!shape) return nullptr;
  const auto rank = static_cast<int64_t>(shape->size());
  const int64_t dim = wrapped(op.dim(), rank);
  const auto unit = [&](ir::Value* x) {
    if (x->rank() != rank || x->dim(dim) != (*shape)[static_cast<size_t>(dim)])
      x = aten::Expand::create(b, x, *shape);
    ir::Value* length = aten::LinalgVectorNorm::create(b, x, 2.0, ir::Ints{dim}, true);
    return aten::DivTensor::create(b, x, aten::ClampMin::create(b, length, op.eps()));
  };
  ir::Value *x = unit(op.x1()), *y = unit(op.x2());
  return aten::SumDimIntList::create(b, aten::MulTensor::create(b, x, y), ir::Ints{dim});
}

}  // namespace

void replaceNode(ir::Node* node, ir::Value* value) {
  ir::Graph& graph = node->graph();
  if (value->name.empty() && !value->isConstant()) std::swap(value->name, node->result()->name);
  graph.replaceAllUses(node->result(), value);
  graph.erase(node);
}

ir::Value* viewed(ir::Builder& builder, ir::Value* x, const Shape& shape) {
  return x->shape() == shape ? x : aten::View::create(builder, x, shape);
}

ir::Value* number(ir::Builder& builder, double value, int64_t rank) {
  return builder.constant(
      Tensor::from(Shape(static_cast<size_t>(rank), 1), std::vector<float>{static_cast<float>(value)}));
}

/// The operand of an operator that repeats it along dimensions of size 1.
ir::Value* expandedFrom(const ir::Value* value) {
  const ir::Node* node = value->producer();
  if (!node) return nullptr;
  if (!ir::isa<aten::Expand>(node) && !ir::isa<aten::ExpandAs>(node) && !ir::isa<aten::BroadcastTo>(node))
    return nullptr;
  return node->operands()[0];
}

bool isQuantizedAsUnit(const ir::Node& node) {
  return aten::factsOf(node).tosa != aten::TosaForm::None &&
         std::any_of(node.operands().begin(), node.operands().end(), [](const ir::Value* operand) {
           return operand && (ir::producerAs<aten::DequantizePerTensor>(operand) ||
                              ir::producerAs<aten::DequantizePerChannel>(operand));
         });
}

void addPointwiseRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteDivision, rewriteGlu, rewriteMaskedFill, rewritePrelu, rewriteFused,
              rewriteWhereNumbers, rewriteTriangle, rewriteVectorNorm, rewriteCompareNumber,
              rewriteConstantLike, rewriteUnroundedDivision, rewriteWholeDivisionByNumber,
              rewriteCosineSimilarity, rewriteNanToNum, rewriteAbsorbed);
}

}  // namespace carina::decompose
