// SPDX-License-Identifier: Apache-2.0
// Pointwise composites: division, glu, masked_fill, prelu and the like.
#include <algorithm>
#include <cmath>
#include <limits>

#include "aten/operator_facts.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

// Infinite fill values would ruin the observed range; exp() of these is 0 and 8 bits can hold them beside
// real scores.
constexpr double kMostNegative = -255, kMostPositive = 255;

double finite(double value) {
  return std::isinf(value) ? (value < 0 ? kMostNegative : kMostPositive) : value;
}

bool isGiven(const ir::Attribute& value) {
  return !std::holds_alternative<std::monostate>(value);
}

/// The reciprocal of a divisor. max(y, 1e-12) keeps lengths of zero out of a division: what is divided is
/// zero there, so the divisor may be infinite as well, where reciprocals of 1e12 would leave the others
/// without a range.
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
    ir::Value* none = aten::LeTensor::create(b, length, number(b, ir::scalarReal(least), 0)).output();
    ir::Value* infinite = number(b, std::numeric_limits<double>::infinity(), 0);
    divisor = aten::WhereSelf::create(b, none, infinite, length).output();
  }
  return aten::Reciprocal::create(b, divisor).output();
}

/// x / y = x * (1 / y); with a constant divisor the reciprocal is one too.
Result<bool> rewriteDivision(ir::Node* node) {
  if (!ir::isa<aten::DivTensor>(node)) return false;
  if (isQuantizedWhole(*node) || node->operands()[0]->dtype() != DType::Float32 ||
      node->operands()[1]->dtype() != DType::Float32) {
    return false;
  }
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* divisor = node->operands()[1];
  if (ir::Value* narrow = expandedFrom(divisor); narrow && node->operands()[0]->type == node->result()->type)
    divisor = narrow;  // the product repeats it
  replaceNode(node, aten::MulTensor::create(b, node->operands()[0], reciprocalOf(b, divisor)).output());
  return true;
}

/// The first half times the sigmoid of the second.
Result<bool> rewriteGlu(ir::Node* node) {
  const aten::Glu op = ir::dynCast<aten::Glu>(node);
  if (!op || isQuantizedWhole(*node)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  const int64_t dim = wrapped(op.dim(), op.self()->rank());
  const int64_t half = op.self()->dim(dim) / 2;
  const auto part = [&](int64_t from) {
    return aten::SliceTensor::create(b, op.self(), dim, from, from + half, int64_t{1}).output();
  };
  ir::Value* first = part(0);
  ir::Value* gate = aten::Sigmoid::create(b, part(half)).output();
  replaceNode(node, aten::MulTensor::create(b, first, gate).output());
  return true;
}

/// where(mask, value, x) with a constant value.
Result<bool> rewriteMaskedFill(ir::Node* node) {
  if (!ir::isa<aten::MaskedFillScalar>(node) && !ir::isa<aten::MaskedFillTensor>(node)) return false;
  if (isQuantizedWhole(*node) || node->operands()[0]->dtype() != DType::Float32) return false;
  ir::Value* fill = nullptr;
  ir::Builder b = ir::Builder::beforeNode(node);
  if (const auto op = ir::dynCast<aten::MaskedFillScalar>(node))
    fill = number(b, finite(ir::scalarReal(op.value())), 0);
  else if (const auto tensor = ir::dynCast<aten::MaskedFillTensor>(node)) {
    fill = tensor.value()->isConstant() ? number(b, finite(tensor.value()->constant().realAt(0)), 0)
                                        : tensor.value();
    if (fill->dtype() != DType::Float32) return false;
  } else {
    return false;
  }
  replaceNode(node, aten::WhereSelf::create(b, node->operands()[1], fill, node->operands()[0]).output());
  return true;
}

/// relu(x) - w * relu(-x); one weight for all is leaky_relu.
Result<bool> rewritePrelu(ir::Node* node) {
  const aten::Prelu op = ir::dynCast<aten::Prelu>(node);
  if (!op || isQuantizedWhole(*node) || !op.weight()->isConstant()) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  if (op.weight()->numElements() == 1) {
    replaceNode(node, aten::LeakyRelu::create(b, op.self(), op.weight()->constant().realAt(0)).output());
    return true;
  }
  ir::Ints shape(op.self()->shape().size(), 1);
  shape[shape.size() > 1 ? 1 : 0] = op.weight()->numElements();
  ir::Value* weight = aten::View::create(b, op.weight(), shape).output();
  ir::Value* positive = aten::Relu::create(b, op.self()).output();
  ir::Value* negative = aten::ClampMax::create(b, op.self(), 0.0).output();
  ir::Value* scaled = aten::MulTensor::create(b, negative, weight).output();
  replaceNode(node, aten::AddTensor::create(b, positive, scaled, int64_t{1}).output());
  return true;
}

/// self + value * a * b, self + value * a / b
Result<bool> rewriteFused(ir::Node* node) {
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* product = nullptr;
  double factor = 1;
  if (isQuantizedWhole(*node)) return false;
  if (const auto multiply = ir::dynCast<aten::Addcmul>(node)) {
    product = aten::MulTensor::create(b, multiply.tensor1(), multiply.tensor2()).output();
    factor = ir::scalarReal(multiply.value());
  } else if (const auto divide = ir::dynCast<aten::Addcdiv>(node)) {
    product = aten::DivTensor::create(b, divide.tensor1(), divide.tensor2()).output();
    factor = ir::scalarReal(divide.value());
  } else {
    return false;
  }
  replaceNode(node, aten::AddTensor::create(b, node->operands()[0], product, factor).output());
  return true;
}

/// where() with numbers: constants of the result's type.
Result<bool> rewriteWhereNumbers(ir::Node* node) {
  ir::Builder b = ir::Builder::beforeNode(node);
  const auto constant = [&](double value) -> ir::Value* {
    return b.constant(convert(Tensor::scalar(static_cast<float>(finite(value))), node->result()->dtype()));
  };
  ir::Value* yes = nullptr;
  ir::Value* no = nullptr;
  if (const auto other = ir::dynCast<aten::WhereScalarOther>(node)) {
    yes = other.self();
    no = constant(ir::scalarReal(other.other()));
  } else if (const auto self = ir::dynCast<aten::WhereScalarSelf>(node)) {
    yes = constant(ir::scalarReal(self.self()));
    no = self.other();
  } else if (const auto both = ir::dynCast<aten::WhereScalar>(node)) {
    yes = constant(ir::scalarReal(both.self()));
    no = constant(ir::scalarReal(both.other()));
  } else {
    return false;
  }
  if (yes->dtype() != no->dtype()) return false;
  replaceNode(node, aten::WhereSelf::create(b, node->operands()[0], yes, no).output());
  return true;
}

/// where(isnan(x), number, x) and the same for infinities: nan_to_num, which leaves the number out of x's
/// range.
Result<bool> rewriteNanToNum(ir::Node* node) {
  const auto op = ir::dynCast<aten::WhereSelf>(node);
  if (!op || !op.self()->isConstant() || op.self()->numElements() != 1 || !op.condition()->producer() ||
      op.other()->dtype() != DType::Float32 || op.other()->type != node->result()->type)
    return false;
  const ir::Node* test = op.condition()->producer();
  const bool nan = ir::isa<aten::Isnan>(test), high = ir::isa<aten::Isposinf>(test);
  if (!nan && !high && !ir::isa<aten::Isneginf>(test)) return false;
  const auto inner = ir::producerAs<aten::NanToNum>(op.other());
  ir::Value* x = inner && op.other()->hasOneUse() ? inner.self() : op.other();
  if (test->operands()[0] != x) return false;
  constexpr double kMost = std::numeric_limits<float>::max(),
                   kInfinity = std::numeric_limits<double>::infinity();
  const bool fresh = x == op.other();
  double ofNan = fresh ? std::nan("") : inner.nan().value_or(0);
  double ofHigh = fresh ? kInfinity : inner.posinf().value_or(kMost);
  double ofLow = fresh ? -kInfinity : inner.neginf().value_or(-kMost);
  (nan ? ofNan : high ? ofHigh : ofLow) = op.self()->constant().realAt(0);
  ir::Builder b = ir::Builder::beforeNode(node);
  replaceNode(node, aten::NanToNum::create(b, x, ofNan, ofHigh, ofLow).output());
  return true;
}

/// tril, triu: where with a constant mask.
Result<bool> rewriteTriangle(ir::Node* node) {
  const auto lower = ir::dynCast<aten::Tril>(node);
  const auto upper = ir::dynCast<aten::Triu>(node);
  if ((!lower && !upper) || isQuantizedWhole(*node)) return false;
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
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* zero = b.constant(Tensor::zeros(x->dtype(), {}));
  replaceNode(node,
              aten::WhereSelf::create(b, b.constant(std::move(mask)), node->operands()[0], zero).output());
  return true;
}

/// sqrt(sum(x^2)), sum(|x|), max(|x|)
Result<bool> rewriteVectorNorm(ir::Node* node) {
  const aten::LinalgVectorNorm op = ir::dynCast<aten::LinalgVectorNorm>(node);
  if (!op || isQuantizedWhole(*node) || op.self()->dtype() != DType::Float32) return false;
  const double order = ir::scalarReal(op.ord());
  ir::Builder b = ir::Builder::beforeNode(node);
  if (order == 2) {
    ir::Value* square = aten::MulTensor::create(b, op.self(), op.self()).output();
    ir::Value* sum = aten::SumDimIntList::create(b, square, op.dim(), op.keepdim(), std::nullopt).output();
    replaceNode(node, aten::Sqrt::create(b, sum).output());
  } else if (order == 1) {
    ir::Value* magnitude = aten::Abs::create(b, op.self()).output();
    replaceNode(node,
                aten::SumDimIntList::create(b, magnitude, op.dim(), op.keepdim(), std::nullopt).output());
  } else if (std::isinf(order) && order > 0) {
    ir::Value* magnitude = aten::Abs::create(b, op.self()).output();
    replaceNode(node, aten::Amax::create(b, magnitude, op.dim().value_or(ir::Ints{}), op.keepdim()).output());
  } else {
    return false;
  }
  return true;
}

/// A comparison with positive or negative infinity, in questions about NaN and infinities.
ir::Value* againstInfinity(ir::Builder& b, aten::OpId id, ir::Value* x, bool positive) {
  using aten::OpId;
  ir::Value* same = positive ? aten::Isposinf::create(b, x).output() : aten::Isneginf::create(b, x).output();
  ir::Value* nan = aten::Isnan::create(b, x).output();
  const auto inverted = [&](ir::Value* v) { return aten::LogicalNot::create(b, v).output(); };
  if (id == OpId::EqScalar || id == (positive ? OpId::GeScalar : OpId::LeScalar)) return same;
  if (id == OpId::NeScalar) return inverted(same);
  if (id == (positive ? OpId::LeScalar : OpId::GeScalar)) return inverted(nan);
  if (id == (positive ? OpId::LtScalar : OpId::GtScalar))
    return inverted(aten::LogicalOr::create(b, same, nan).output());
  return aten::LogicalAnd::create(b, same, nan).output();  // never
}

/// A comparison with a number: with a constant of the same type and range.
Result<bool> rewriteCompareNumber(ir::Node* node) {
  if (isQuantizedWhole(*node) || node->operands().size() != 1) return false;
  using aten::OpId;
  if (!aten::isOperator(node)) return false;
  const OpId id = aten::opId(node);
  if (id != OpId::EqScalar && id != OpId::NeScalar && id != OpId::LtScalar && id != OpId::LeScalar &&
      id != OpId::GtScalar && id != OpId::GeScalar) {
    return false;
  }
  const ir::Value* self = node->operands()[0];
  if (self->dtype() == DType::Bool ||
      (isInteger(self->dtype()) && std::holds_alternative<double>(node->attribute(0))))
    return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  const double limit = ir::scalarReal(node->attribute(0));
  ir::Value* other = b.constant(convert(Tensor::scalar(limit), self->dtype()));
  ir::Value* x = node->operands()[0];
  ir::Value* result = nullptr;
  if (std::isinf(limit)) {
    // Not a comparison of codes: the largest one stands for a finite number.
    replaceNode(node, againstInfinity(b, id, x, limit > 0));
    return true;
  }
  switch (id) {
    case OpId::EqScalar:
      result = aten::EqTensor::create(b, x, other).output();
      break;
    case OpId::NeScalar:
      result = aten::NeTensor::create(b, x, other).output();
      break;
    case OpId::LtScalar:
      result = aten::LtTensor::create(b, x, other).output();
      break;
    case OpId::LeScalar:
      result = aten::LeTensor::create(b, x, other).output();
      break;
    case OpId::GtScalar:
      result = aten::GtTensor::create(b, x, other).output();
      break;
    default:
      result = aten::GeTensor::create(b, x, other).output();
      break;
  }
  replaceNode(node, result);
  return true;
}

/// Results that do not depend on their operand's values.
Result<bool> rewriteConstantLike(ir::Node* node) {
  std::optional<double> value;
  if (const auto full = ir::dynCast<aten::FullLike>(node))
    value = ir::scalarReal(full.fillValue());
  else if (const auto filled = ir::dynCast<aten::NewFull>(node))
    value = ir::scalarReal(filled.fillValue());
  else if (ir::isa<aten::ZerosLike>(node) || ir::isa<aten::NewZeros>(node))
    value = 0;
  else if (ir::isa<aten::OnesLike>(node) || ir::isa<aten::NewOnes>(node))
    value = 1;
  if (!value) return false;
  Tensor reals = Tensor::uninitialized(DType::Float64, node->result()->shape());
  const auto elements = reals.mutableAs<double>();
  std::fill(elements.begin(), elements.end(), *value);
  ir::Builder b = ir::Builder::beforeNode(node);
  replaceNode(node, b.constant(convert(reals, node->result()->dtype())));
  return true;
}

/// Division without a rounding mode.
Result<bool> rewriteUnroundedDivision(ir::Node* node) {
  const auto mode = ir::dynCast<aten::DivTensorMode>(node);
  if (!mode || mode.roundingMode() || isQuantizedWhole(*node)) return false;
  ir::Value* x = node->operands()[0];
  ir::Value* y = node->operands()[1];
  if (x->dtype() != DType::Float32 || y->dtype() != DType::Float32) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  replaceNode(node, aten::DivTensor::create(b, x, y).output());
  return true;
}

/// floor(x / y), trunc(x / y) of a float tensor and a number.
Result<bool> rewriteWholeDivisionByNumber(ir::Node* node) {
  const auto mode = ir::dynCast<aten::DivScalarMode>(node);
  const auto floored = ir::dynCast<aten::FloorDivideScalar>(node);
  if ((!mode && !floored) || isQuantizedWhole(*node)) return false;
  ir::Value* x = node->operands()[0];
  if (x->dtype() != DType::Float32) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* quotient = aten::DivScalar::create(b, x, mode ? mode.other() : floored.other()).output();
  const std::string rounding = mode ? mode.roundingMode().value_or("") : "floor";
  if (rounding == "floor")
    quotient = aten::Floor::create(b, quotient).output();
  else if (rounding == "trunc")
    quotient = aten::Trunc::create(b, quotient).output();
  replaceNode(node, quotient);
  return true;
}

/// x * y / (max(|x|, eps) * max(|y|, eps)), summed over one dimension.
Result<bool> rewriteCosineSimilarity(ir::Node* node) {
  const auto op = ir::dynCast<aten::CosineSimilarity>(node);
  if (!op || isQuantizedWhole(*node) || op.x1()->dtype() != DType::Float32 ||
      op.x2()->dtype() != DType::Float32) {
    return false;
  }
  const int64_t rank = std::max(op.x1()->rank(), op.x2()->rank());
  const ir::Ints dims{op.dim() < 0 ? op.dim() : op.dim() - rank};
  ir::Builder b = ir::Builder::beforeNode(node);
  const auto sum = [&](ir::Value* x, ir::Value* y) {
    return aten::SumDimIntList::create(b, aten::MulTensor::create(b, x, y).output(), dims, false,
                                       std::nullopt)
        .output();
  };
  const auto inverseLength = [&](ir::Value* x) {
    ir::Value* length =
        aten::ClampMin::create(b, aten::Sqrt::create(b, sum(x, x)).output(), op.eps()).output();
    return reciprocalOf(b, length);
  };
  ir::Value* inverse = aten::MulTensor::create(b, inverseLength(op.x1()), inverseLength(op.x2())).output();
  replaceNode(node, aten::MulTensor::create(b, sum(op.x1(), op.x2()), inverse).output());
  return true;
}

}  // namespace

void replaceNode(ir::Node* node, ir::Value* value) {
  ir::Graph& graph = node->graph();
  if (value->name.empty() && !value->isConstant()) std::swap(value->name, node->result()->name);
  graph.replaceAllUses(node->result(), value);
  graph.erase(node);
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

bool isQuantizedWhole(const ir::Node& node) {
  return aten::factsOf(node).tosa != aten::TosaForm::None &&
         std::any_of(node.operands().begin(), node.operands().end(), [](const ir::Value* operand) {
           return operand && (ir::producerAs<aten::DequantizePerTensor>(operand) ||
                              ir::producerAs<aten::DequantizePerChannel>(operand));
         });
}

void addPointwiseRewrites(std::vector<ir::Rewrite>& rewrites) {
  rewrites.insert(rewrites.end(), {rewriteDivision, rewriteGlu, rewriteMaskedFill, rewritePrelu, rewriteFused,
                                   rewriteWhereNumbers, rewriteTriangle, rewriteVectorNorm,
                                   rewriteCompareNumber, rewriteConstantLike, rewriteUnroundedDivision,
                                   rewriteWholeDivisionByNumber, rewriteCosineSimilarity, rewriteNanToNum});
}

}  // namespace carina::decompose
