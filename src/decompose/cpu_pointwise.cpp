// SPDX-License-Identifier: Apache-2.0
// Activations, numbers in place of tensors, full reductions, normalizations.
#include <cmath>
#include <limits>
#include <numbers>

#include "aten/ops.hpp"
#include "decompose/arithmetic.hpp"
#include "decompose/cpu_rewrites.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose::cpu {
namespace {

using aten::OpId;

ir::Value* constantOf(ir::Builder& b, double value, DType dtype) {
  return b.constant(convert(Tensor::scalar(value), dtype));
}

ir::Value* limited(ir::Builder& b, ir::Value* x, double low, double high) {
  return aten::Clamp::create(b, x, low, high);
}
/// clamp(x + 3, 0, 6) / 6
ir::Value* hardGate(ir::Builder& b, ir::Value* x) {
  return aten::DivScalar::create(b, limited(b, add(b, x, 3.0), 0.0, 6.0), 6.0);
}
/// log(1 + exp(beta x)) / beta, and x where beta x is beyond the threshold.
ir::Value* softplus(ir::Builder& b, ir::Value* x, double beta, double threshold) {
  ir::Value* scaled = beta == 1 ? x : mul(b, x, beta);
  ir::Value* far = aten::GtScalar::create(b, scaled, threshold);
  ir::Value* soft = aten::Log1p::create(b, aten::Exp::create(b, scaled));
  if (beta != 1) soft = aten::DivScalar::create(b, soft, beta);
  return aten::WhereSelf::create(b, far, x, soft);
}

ir::Value* isNan(ir::Builder& b, ir::Value* x) {
  return aten::Isnan::create(b, x);
}
ir::Value* isEqual(ir::Builder& b, ir::Value* x, double number) {
  return aten::EqScalar::create(b, x, number);
}
/// NaN and infinities replaced.
ir::Value* nanToNumber(ir::Builder& b, const aten::NanToNum& op) {
  constexpr double kMost = std::numeric_limits<float>::max(), kInfinity = HUGE_VAL;
  const DType dtype = op.self()->dtype();
  ir::Value* x = op.self();
  ir::Value* high = isEqual(b, x, kInfinity);
  ir::Value* low = isEqual(b, x, -kInfinity);
  ir::Value* result = where(b, isNan(b, x), constantOf(b, op.nan().value_or(0), dtype), x);
  result = where(b, high, constantOf(b, op.posinf().value_or(kMost), dtype), result);
  return where(b, low, constantOf(b, op.neginf().value_or(-kMost), dtype), result);
}

/// Expresses an activation without its own kernel by others; null if `node` is not one.
ir::Value* activation(ir::Builder& b, const ir::Node& node, ir::Value* x) {
  switch (aten::opId(&node)) {
    case OpId::Silu:
      return mul(b, x, aten::Sigmoid::create(b, x));
    case OpId::Hardsigmoid:
      return hardGate(b, x);
    case OpId::Hardswish:
      return mul(b, x, hardGate(b, x));
    case OpId::Relu6:
      return aten::Hardtanh::create(b, x, 0.0, 6.0);
    case OpId::Mish:
      return mul(b, x, aten::Tanh::create(b, softplus(b, x, 1.0, 20.0)));
    case OpId::Softplus: {
      const auto op = ir::cast<aten::Softplus>(&node);
      return softplus(b, x, ir::scalarReal(op.beta()), ir::scalarReal(op.threshold()));
    }
    case OpId::LogSigmoid: {
      ir::Value* tail = aten::Exp::create(b, aten::Neg::create(b, aten::Abs::create(b, x)));
      ir::Value* low = aten::Clamp::create(b, x, std::monostate{}, 0.0);
      return aten::SubTensor::create(b, low, aten::Log1p::create(b, tail));
    }
    case OpId::Celu: {
      const double alpha = ir::scalarReal(ir::cast<aten::Celu>(&node).alpha());
      return aten::Elu::create(b, x, alpha, 1.0, 1.0 / alpha);
    }
    case OpId::Selu:
      return aten::Elu::create(b, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946,
                               1.0);
    case OpId::Softshrink: {
      const double lambda = ir::scalarReal(ir::cast<aten::Softshrink>(&node).lambd());
      return aten::SubTensor::create(b, x, limited(b, x, -lambda, lambda));
    }
    case OpId::Hardshrink: {
      const double lambda = ir::scalarReal(ir::cast<aten::Hardshrink>(&node).lambd());
      ir::Value* kept = aten::GtScalar::create(b, aten::Abs::create(b, x), lambda);
      return aten::WhereSelf::create(b, kept, x, constantOf(b, 0, x->dtype()));
    }
    case OpId::Threshold: {
      const auto op = ir::cast<aten::Threshold>(&node);
      ir::Value* above = aten::GtScalar::create(b, x, op.threshold());
      return aten::WhereSelf::create(b, above, x, constantOf(b, ir::scalarReal(op.value()), x->dtype()));
    }
    case OpId::NanToNum:
      return x->dtype() == DType::Float32 ? nanToNumber(b, ir::dynCast<aten::NanToNum>(&node)) : x;
    case OpId::Isfinite: {
      ir::Value* infinite = aten::Isinf::create(b, x);
      return aten::LogicalNot::create(b, aten::LogicalOr::create(b, infinite, isNan(b, x)));
    }
    case OpId::Isposinf:
      return isEqual(b, x, HUGE_VAL);
    case OpId::Isneginf:
      return isEqual(b, x, -HUGE_VAL);
    case OpId::Signbit: {
      // The inverse of a negative zero is also below zero.
      if (x->dtype() != DType::Float32) return aten::LtScalar::create(b, x, 0.0);
      ir::Value* inverse = aten::Reciprocal::create(b, x);
      return aten::LtScalar::create(b, where(b, isEqual(b, x, 0), inverse, x), 0.0);
    }
    case OpId::Sinc: {
      ir::Value* angle = mul(b, x, std::numbers::pi);
      ir::Value* ratio = aten::DivTensor::create(b, aten::Sin::create(b, angle), angle);
      return where(b, isEqual(b, x, 0), constantOf(b, 1, x->dtype()), ratio);
    }
    case OpId::Square:
      return mul(b, x, x);
    case OpId::Exp2:
      return aten::PowScalar::create(b, x, 2.0);
    case OpId::Erfc:
      return aten::RsubScalar::create(b, aten::Erf::create(b, x), 1.0);
    case OpId::Frac:
      return aten::SubTensor::create(b, x, aten::Trunc::create(b, x));
    case OpId::Sgn:
      return aten::Sign::create(b, x);
    case OpId::ClampMin:
      return aten::Clamp::create(b, x, ir::cast<aten::ClampMin>(&node).min(), std::monostate{});
    case OpId::ClampMax:
      return aten::Clamp::create(b, x, std::monostate{}, ir::cast<aten::ClampMax>(&node).max());
    case OpId::Prelu: {
      const auto op = ir::cast<aten::Prelu>(&node);
      ir::Ints shape(x->shape().size(), 1);
      if (!shape.empty()) shape[shape.size() > 1 ? 1 : 0] = op.weight()->numElements();
      ir::Value* weight = aten::View::create(b, op.weight(), shape);
      ir::Value* positive = aten::GtScalar::create(b, x, 0.0);
      return aten::WhereSelf::create(b, positive, x, mul(b, x, weight));
    }
    default:
      return nullptr;
  }
}

ir::Value* rewriteActivation(ir::Builder& b, ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().empty() || node->results().size() != 1 ||
      !node->operands()[0])
    return nullptr;
  return activation(b, *node, node->operands()[0]);
}

/// The number of an operator with a Scalar, as a tensor of its operand's type.
ir::Value* numberLike(ir::Builder& b, const ir::Node& node) {
  return constantOf(b, ir::scalarReal(node.attribute(0)), node.operands()[0]->dtype());
}

/// Operators that differ from others only in name, operand order or broadcasting.
ir::Value* otherName(ir::Builder& b, ir::Node* node) {
  const auto& operands = node->operands();
  switch (aten::opId(node)) {
    case OpId::RsubTensor:
      return aten::SubTensor::create(b, operands[1], operands[0], ir::cast<aten::RsubTensor>(node).alpha());
    case OpId::FloorDivideScalar:
      return aten::FloorDivide::create(b, operands[0], numberLike(b, *node));
    case OpId::Fmax:
    case OpId::Fmin: {
      // The number if the other operand is NaN.
      ir::Value* extreme = aten::opId(node) == OpId::Fmax
                               ? aten::Maximum::create(b, operands[0], operands[1])
                               : aten::Minimum::create(b, operands[0], operands[1]);
      ir::Value* first = where(b, isNan(b, operands[1]), operands[0], extreme);
      return where(b, isNan(b, operands[0]), operands[1], first);
    }
    case OpId::PrivateSafeSoftmax: {
      // A row without a finite score is zero.
      const auto op = ir::cast<aten::PrivateSafeSoftmax>(node);
      ir::Value* largest = aten::Amax::create(b, op.self(), ir::Ints{op.dim()}, true);
      ir::Value* soft = aten::PrivateSoftmax::create(b, op.self(), op.dim(), false);
      return where(b, isEqual(b, largest, -HUGE_VAL), constantOf(b, 0, soft->dtype()), soft);
    }
    case OpId::All: {
      ir::Value* no = aten::LogicalNot::create(b, operands[0]);
      return aten::LogicalNot::create(b, aten::Any::create(b, no));
    }
    case OpId::AllDim: {
      const auto op = ir::cast<aten::AllDim>(node);
      ir::Value* no = aten::LogicalNot::create(b, operands[0]);
      return aten::LogicalNot::create(b, aten::AnyDim::create(b, no, op.dim(), op.keepdim()));
    }
    case OpId::BitwiseLeftShiftTensorScalar:
      return aten::BitwiseLeftShiftTensor::create(b, operands[0], numberLike(b, *node));
    case OpId::BitwiseRightShiftTensorScalar:
      return aten::BitwiseRightShiftTensor::create(b, operands[0], numberLike(b, *node));
    case OpId::MaskedFillTensor:
      return aten::WhereSelf::create(b, operands[1], operands[2], operands[0]);
    case OpId::Addcmul: {
      const auto op = ir::cast<aten::Addcmul>(node);
      return aten::AddTensor::create(b, operands[0], mul(b, op.tensor1(), op.tensor2()), op.value());
    }
    case OpId::Addcdiv: {
      const auto op = ir::cast<aten::Addcdiv>(node);
      ir::Value* quotient = aten::DivTensor::create(b, op.tensor1(), op.tensor2());
      return aten::AddTensor::create(b, operands[0], quotient, op.value());
    }
    default:
      return nullptr;
  }
}

ir::Value* rewriteBinary(ir::Builder& b, ir::Node* node) {
  ir::Value* result = aten::isOperator(node) ? otherName(b, node) : nullptr;
  return result && result->type == node->result()->type ? result : nullptr;
}

/// where() with numbers: constants of the result's type, including infinite ones.
ir::Value* rewriteWhereNumbers(ir::Builder& b, ir::Node* node) {
  const auto constant = [&](const ir::Attribute& number) {
    return b.constant(
        convert(Tensor::from(Shape{}, std::vector<double>{ir::scalarReal(number)}), node->result()->dtype()));
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
  return aten::WhereSelf::create(b, node->operands()[0], yes, no);
}

ir::Ints allDims(const ir::Value* x) {
  return numbersBelow(x->rank());
}

ir::Value* rewriteReduction(ir::Builder& b, ir::Node* node) {
  if (!aten::isOperator(node)) return nullptr;
  switch (aten::opId(node)) {
    case OpId::Sum: {
      const auto op = ir::cast<aten::Sum>(node);
      return aten::SumDimIntList::create(b, op.self(), allDims(op.self()), false, op.dtype());
    }
    case OpId::Mean: {
      const auto op = ir::cast<aten::Mean>(node);
      return aten::MeanDim::create(b, op.self(), allDims(op.self()), false, op.dtype());
    }
    case OpId::Max:
      return aten::Amax::create(b, node->operands()[0], allDims(node->operands()[0]));
    case OpId::Min:
      return aten::Amin::create(b, node->operands()[0], allDims(node->operands()[0]));
    case OpId::Var:
      return aten::VarCorrection::create(b, node->operands()[0], std::nullopt,
                                         int64_t{ir::cast<aten::Var>(node).unbiased()}, false);
    case OpId::VarDim: {
      const auto op = ir::cast<aten::VarDim>(node);
      return aten::VarCorrection::create(b, op.self(), op.dim(), int64_t{op.unbiased()}, op.keepdim());
    }
    case OpId::StdCorrection: {
      const auto op = ir::cast<aten::StdCorrection>(node);
      return aten::Sqrt::create(
          b, aten::VarCorrection::create(b, op.self(), op.dim(), op.correction(), op.keepdim()));
    }
    default:
      return nullptr;
  }
}

/// The composite forms of softmax and of normalizations that have kernels.
ir::Value* rewriteNorm(ir::Builder& b, ir::Node* node) {
  if (!aten::isOperator(node)) return nullptr;
  switch (aten::opId(node)) {
    case OpId::SoftmaxInt:
    case OpId::LogSoftmaxInt: {
      ir::Value* x = node->operands()[0];
      if (x->dtype() != node->result()->dtype()) return nullptr;
      if (const auto soft = ir::dynCast<aten::SoftmaxInt>(node))
        return aten::PrivateSoftmax::create(b, x, soft.dim(), false);
      return aten::PrivateLogSoftmax::create(b, x, ir::cast<aten::LogSoftmaxInt>(node).dim(), false);
    }
    case OpId::LayerNorm: {
      const auto op = ir::cast<aten::LayerNorm>(node);
      return aten::NativeLayerNorm::create(b, op.input(), op.weight(), op.bias(), op.normalizedShape(),
                                           op.eps())
          ->result(0);
    }
    case OpId::RmsNorm: {
      const auto op = ir::cast<aten::RmsNorm>(node);
      ir::Ints dims;
      for (size_t i = op.normalizedShape().size(); i > 0; --i) dims.push_back(-static_cast<int64_t>(i));
      const double eps = op.eps().value_or(std::numeric_limits<float>::epsilon());
      ir::Value* square = aten::MulTensor::create(b, op.input(), op.input());
      ir::Value* mean = aten::MeanDim::create(b, square, std::move(dims), true);
      ir::Value* shifted = aten::AddScalar::create(b, mean, eps);
      ir::Value* result = aten::MulTensor::create(b, op.input(), aten::Rsqrt::create(b, shifted));
      return op.weight() ? aten::MulTensor::create(b, result, op.weight()) : result;
    }
    case OpId::GroupNorm: {
      const auto op = ir::cast<aten::GroupNorm>(node);
      const int64_t n = op.input()->dim(0), c = op.input()->dim(1);
      if (n == 0 || c == 0) return nullptr;
      const int64_t pixels = op.input()->numElements() / (n * c);
      return aten::NativeGroupNorm::create(b, op.input(), op.weight(), op.bias(), n, c, pixels,
                                           op.numGroups(), op.eps())
          ->result(0);
    }
    case OpId::BatchNorm: {
      const auto op = ir::cast<aten::BatchNorm>(node);
      if (op.training() || !op.runningMean() || !op.runningVar()) return nullptr;
      return aten::PrivateNativeBatchNormLegitNoTraining::create(b, op.input(), op.weight(), op.bias(),
                                                                 op.runningMean(), op.runningVar(),
                                                                 op.momentum(), op.eps())
          ->result(0);
    }
    default:
      return nullptr;
  }
}

}  // namespace

void addPointwiseRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteActivation, rewriteBinary, rewriteWhereNumbers, rewriteHalves,
              rewriteReducedType, rewriteReduction, rewriteNorm);
}

}  // namespace carina::decompose::cpu
