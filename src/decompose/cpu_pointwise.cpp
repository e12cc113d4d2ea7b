// SPDX-License-Identifier: Apache-2.0
// Activations, numbers in place of tensors, reductions over everything, normalizations.
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "aten/ops.hpp"
#include "decompose/cpu_rewrites.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose::cpu {
namespace {

using aten::OpId;

constexpr int64_t kOne = 1;

ir::Value* constantOf(ir::Builder& b, double value, DType dtype) {
  return b.constant(convert(Tensor::scalar(value), dtype));
}

ir::Value* sum(ir::Builder& b, ir::Value* x, double y) {
  return aten::AddScalar::create(b, x, y, kOne).output();
}
ir::Value* product(ir::Builder& b, ir::Value* x, double y) {
  return aten::MulScalar::create(b, x, y).output();
}
ir::Value* product(ir::Builder& b, ir::Value* x, ir::Value* y) {
  return aten::MulTensor::create(b, x, y).output();
}
ir::Value* limited(ir::Builder& b, ir::Value* x, double low, double high) {
  return aten::Clamp::create(b, x, low, high).output();
}
/// clamp(x + 3, 0, 6) / 6
ir::Value* hardGate(ir::Builder& b, ir::Value* x) {
  return aten::DivScalar::create(b, limited(b, sum(b, x, 3.0), 0.0, 6.0), 6.0).output();
}
/// log(1 + exp(beta x)) / beta, and x where beta x is beyond the threshold.
ir::Value* softplus(ir::Builder& b, ir::Value* x, double beta, double threshold) {
  ir::Value* scaled = beta == 1 ? x : product(b, x, beta);
  ir::Value* far = aten::GtScalar::create(b, scaled, threshold).output();
  ir::Value* soft = aten::Log1p::create(b, aten::Exp::create(b, scaled).output()).output();
  if (beta != 1) soft = aten::DivScalar::create(b, soft, beta).output();
  return aten::WhereSelf::create(b, far, x, soft).output();
}

ir::Value* isNan(ir::Builder& b, ir::Value* x) {
  return aten::Isnan::create(b, x).output();
}
ir::Value* where(ir::Builder& b, ir::Value* condition, ir::Value* yes, ir::Value* no) {
  return aten::WhereSelf::create(b, condition, yes, no).output();
}
ir::Value* isEqual(ir::Builder& b, ir::Value* x, double number) {
  return aten::EqScalar::create(b, x, number).output();
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

/// What an activation without a kernel of its own is in terms of others; null when `node` is none.
ir::Value* activation(ir::Builder& b, const ir::Node& node, ir::Value* x) {
  switch (aten::opId(&node)) {
    case OpId::Silu:
      return product(b, x, aten::Sigmoid::create(b, x).output());
    case OpId::Hardsigmoid:
      return hardGate(b, x);
    case OpId::Hardswish:
      return product(b, x, hardGate(b, x));
    case OpId::Relu6:
      return aten::Hardtanh::create(b, x, 0.0, 6.0).output();
    case OpId::Mish:
      return product(b, x, aten::Tanh::create(b, softplus(b, x, 1.0, 20.0)).output());
    case OpId::Softplus: {
      const auto op = ir::dynCast<aten::Softplus>(&node);
      return softplus(b, x, ir::scalarReal(op.beta()), ir::scalarReal(op.threshold()));
    }
    case OpId::LogSigmoid: {
      ir::Value* tail =
          aten::Exp::create(b, aten::Neg::create(b, aten::Abs::create(b, x).output()).output()).output();
      ir::Value* low = aten::Clamp::create(b, x, std::monostate{}, 0.0).output();
      return aten::SubTensor::create(b, low, aten::Log1p::create(b, tail).output(), kOne).output();
    }
    case OpId::Celu: {
      const double alpha = ir::scalarReal(ir::dynCast<aten::Celu>(&node).alpha());
      return aten::Elu::create(b, x, alpha, 1.0, 1.0 / alpha).output();
    }
    case OpId::Selu:
      return aten::Elu::create(b, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946,
                               1.0)
          .output();
    case OpId::Softshrink: {
      const double lambda = ir::scalarReal(ir::dynCast<aten::Softshrink>(&node).lambd());
      return aten::SubTensor::create(b, x, limited(b, x, -lambda, lambda), kOne).output();
    }
    case OpId::Hardshrink: {
      const double lambda = ir::scalarReal(ir::dynCast<aten::Hardshrink>(&node).lambd());
      ir::Value* kept = aten::GtScalar::create(b, aten::Abs::create(b, x).output(), lambda).output();
      return aten::WhereSelf::create(b, kept, x, constantOf(b, 0, x->dtype())).output();
    }
    case OpId::Threshold: {
      const auto op = ir::dynCast<aten::Threshold>(&node);
      ir::Value* above = aten::GtScalar::create(b, x, op.threshold()).output();
      return aten::WhereSelf::create(b, above, x, constantOf(b, ir::scalarReal(op.value()), x->dtype()))
          .output();
    }
    case OpId::NanToNum:
      return x->dtype() == DType::Float32 ? nanToNumber(b, ir::dynCast<aten::NanToNum>(&node)) : x;
    case OpId::Isfinite: {
      ir::Value* infinite = aten::Isinf::create(b, x).output();
      return aten::LogicalNot::create(b, aten::LogicalOr::create(b, infinite, isNan(b, x)).output()).output();
    }
    case OpId::Isposinf:
      return isEqual(b, x, HUGE_VAL);
    case OpId::Isneginf:
      return isEqual(b, x, -HUGE_VAL);
    case OpId::Signbit: {
      // The inverse of a negative zero is below zero, too.
      if (x->dtype() != DType::Float32) return aten::LtScalar::create(b, x, 0.0).output();
      ir::Value* inverse = aten::Reciprocal::create(b, x).output();
      return aten::LtScalar::create(b, where(b, isEqual(b, x, 0), inverse, x), 0.0).output();
    }
    case OpId::Sinc: {
      ir::Value* angle = product(b, x, std::numbers::pi);
      ir::Value* ratio = aten::DivTensor::create(b, aten::Sin::create(b, angle).output(), angle).output();
      return where(b, isEqual(b, x, 0), constantOf(b, 1, x->dtype()), ratio);
    }
    case OpId::Square:
      return product(b, x, x);
    case OpId::Exp2:
      return aten::PowScalar::create(b, x, 2.0).output();
    case OpId::Erfc:
      return aten::RsubScalar::create(b, aten::Erf::create(b, x).output(), 1.0, kOne).output();
    case OpId::Frac:
      return aten::SubTensor::create(b, x, aten::Trunc::create(b, x).output(), kOne).output();
    case OpId::Sgn:
      return aten::Sign::create(b, x).output();
    case OpId::ClampMin:
      return aten::Clamp::create(b, x, ir::dynCast<aten::ClampMin>(&node).min(), std::monostate{}).output();
    case OpId::ClampMax:
      return aten::Clamp::create(b, x, std::monostate{}, ir::dynCast<aten::ClampMax>(&node).max()).output();
    case OpId::Prelu: {
      const auto op = ir::dynCast<aten::Prelu>(&node);
      ir::Ints shape(x->shape().size(), 1);
      if (!shape.empty()) shape[shape.size() > 1 ? 1 : 0] = op.weight()->numElements();
      ir::Value* weight = aten::View::create(b, op.weight(), shape).output();
      ir::Value* positive = aten::GtScalar::create(b, x, 0.0).output();
      return aten::WhereSelf::create(b, positive, x, product(b, x, weight)).output();
    }
    default:
      return nullptr;
  }
}

Result<bool> rewriteActivation(ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().empty() || node->results().size() != 1 ||
      !node->operands()[0])
    return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* result = activation(b, *node, node->operands()[0]);
  if (!result) return false;
  replaceNode(node, result);
  return true;
}

/// The number that an operator with a Scalar takes, as a tensor of its operand's type.
ir::Value* numberLike(ir::Builder& b, const ir::Node& node) {
  return constantOf(b, ir::scalarReal(node.attribute(0)), node.operands()[0]->dtype());
}

/// Operators of two tensors that are others with another name, order or broadcast.
Result<bool> rewriteBinary(ir::Node* node) {
  if (!aten::isOperator(node)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* result = nullptr;
  const auto& operands = node->operands();
  switch (aten::opId(node)) {
    case OpId::RsubTensor:
      result =
          aten::SubTensor::create(b, operands[1], operands[0], ir::dynCast<aten::RsubTensor>(node).alpha())
              .output();
      break;
    case OpId::FloorDivideScalar:
      result = aten::FloorDivide::create(b, operands[0], numberLike(b, *node)).output();
      break;
    case OpId::Fmax:
    case OpId::Fmin: {
      // Of a number and NaN the number.
      ir::Value* extreme = aten::opId(node) == OpId::Fmax
                               ? aten::Maximum::create(b, operands[0], operands[1]).output()
                               : aten::Minimum::create(b, operands[0], operands[1]).output();
      result = where(b, isNan(b, operands[1]), operands[0], extreme);
      result = where(b, isNan(b, operands[0]), operands[1], result);
      break;
    }
    case OpId::PrivateSafeSoftmax: {
      // A row without a finite score is zero.
      const auto op = ir::dynCast<aten::PrivateSafeSoftmax>(node);
      ir::Value* largest = aten::Amax::create(b, op.self(), ir::Ints{op.dim()}, true).output();
      ir::Value* soft = aten::PrivateSoftmax::create(b, op.self(), op.dim(), false).output();
      result = where(b, isEqual(b, largest, -HUGE_VAL), constantOf(b, 0, soft->dtype()), soft);
      break;
    }
    case OpId::All: {
      ir::Value* no = aten::LogicalNot::create(b, operands[0]).output();
      result = aten::LogicalNot::create(b, aten::Any::create(b, no).output()).output();
      break;
    }
    case OpId::AllDim: {
      const auto op = ir::dynCast<aten::AllDim>(node);
      ir::Value* no = aten::LogicalNot::create(b, operands[0]).output();
      result =
          aten::LogicalNot::create(b, aten::AnyDim::create(b, no, op.dim(), op.keepdim()).output()).output();
      break;
    }
    case OpId::BitwiseLeftShiftTensorScalar:
      result = aten::BitwiseLeftShiftTensor::create(b, operands[0], numberLike(b, *node)).output();
      break;
    case OpId::BitwiseRightShiftTensorScalar:
      result = aten::BitwiseRightShiftTensor::create(b, operands[0], numberLike(b, *node)).output();
      break;
    case OpId::MaskedFillTensor:
      result = aten::WhereSelf::create(b, operands[1], operands[2], operands[0]).output();
      break;
    case OpId::Addcmul: {
      const auto op = ir::dynCast<aten::Addcmul>(node);
      result = aten::AddTensor::create(b, operands[0], product(b, op.tensor1(), op.tensor2()), op.value())
                   .output();
      break;
    }
    case OpId::Addcdiv: {
      const auto op = ir::dynCast<aten::Addcdiv>(node);
      ir::Value* quotient = aten::DivTensor::create(b, op.tensor1(), op.tensor2()).output();
      result = aten::AddTensor::create(b, operands[0], quotient, op.value()).output();
      break;
    }
    default:
      return false;
  }
  if (result->type != node->result()->type) return false;
  replaceNode(node, result);
  return true;
}

/// where() with numbers: constants of the result's type, infinite ones too.
Result<bool> rewriteWhereNumbers(ir::Node* node) {
  ir::Builder b = ir::Builder::beforeNode(node);
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
    return false;
  }
  replaceNode(node, aten::WhereSelf::create(b, node->operands()[0], yes, no).output());
  return true;
}

ir::Ints allDims(const ir::Value* x) {
  ir::Ints dims(x->shape().size());
  std::iota(dims.begin(), dims.end(), int64_t{0});
  return dims;
}

Result<bool> rewriteReduction(ir::Node* node) {
  if (!aten::isOperator(node)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* result = nullptr;
  switch (aten::opId(node)) {
    case OpId::Sum: {
      const auto op = ir::dynCast<aten::Sum>(node);
      result = aten::SumDimIntList::create(b, op.self(), allDims(op.self()), false, op.dtype()).output();
      break;
    }
    case OpId::Mean: {
      const auto op = ir::dynCast<aten::Mean>(node);
      result = aten::MeanDim::create(b, op.self(), allDims(op.self()), false, op.dtype()).output();
      break;
    }
    case OpId::Max:
      result = aten::Amax::create(b, node->operands()[0], allDims(node->operands()[0]), false).output();
      break;
    case OpId::Min:
      result = aten::Amin::create(b, node->operands()[0], allDims(node->operands()[0]), false).output();
      break;
    case OpId::Var:
      result = aten::VarCorrection::create(b, node->operands()[0], std::nullopt,
                                           int64_t{ir::dynCast<aten::Var>(node).unbiased()}, false)
                   .output();
      break;
    case OpId::VarDim: {
      const auto op = ir::dynCast<aten::VarDim>(node);
      result =
          aten::VarCorrection::create(b, op.self(), op.dim(), int64_t{op.unbiased()}, op.keepdim()).output();
      break;
    }
    case OpId::StdCorrection: {
      const auto op = ir::dynCast<aten::StdCorrection>(node);
      result =
          aten::Sqrt::create(
              b, aten::VarCorrection::create(b, op.self(), op.dim(), op.correction(), op.keepdim()).output())
              .output();
      break;
    }
    default:
      return false;
  }
  replaceNode(node, result);
  return true;
}

/// The composite forms of softmax and of normalizations that have kernels.
Result<bool> rewriteNorm(ir::Node* node) {
  if (!aten::isOperator(node)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* result = nullptr;
  switch (aten::opId(node)) {
    case OpId::SoftmaxInt:
    case OpId::LogSoftmaxInt: {
      ir::Value* x = node->operands()[0];
      if (x->dtype() != node->result()->dtype()) return false;
      if (const auto soft = ir::dynCast<aten::SoftmaxInt>(node))
        result = aten::PrivateSoftmax::create(b, x, soft.dim(), false).output();
      else
        result = aten::PrivateLogSoftmax::create(b, x, ir::dynCast<aten::LogSoftmaxInt>(node).dim(), false)
                     .output();
      break;
    }
    case OpId::LayerNorm: {
      const auto op = ir::dynCast<aten::LayerNorm>(node);
      result =
          aten::NativeLayerNorm::create(b, op.input(), op.weight(), op.bias(), op.normalizedShape(), op.eps())
              ->result(0);
      break;
    }
    case OpId::RmsNorm: {
      const auto op = ir::dynCast<aten::RmsNorm>(node);
      ir::Ints dims;
      for (size_t i = op.normalizedShape().size(); i > 0; --i) dims.push_back(-static_cast<int64_t>(i));
      const double eps = op.eps().value_or(std::numeric_limits<float>::epsilon());
      ir::Value* square = aten::MulTensor::create(b, op.input(), op.input()).output();
      ir::Value* mean = aten::MeanDim::create(b, square, std::move(dims), true, std::nullopt).output();
      ir::Value* shifted = aten::AddScalar::create(b, mean, eps, int64_t{1}).output();
      result = aten::MulTensor::create(b, op.input(), aten::Rsqrt::create(b, shifted).output()).output();
      if (op.weight()) result = aten::MulTensor::create(b, result, op.weight()).output();
      break;
    }
    case OpId::GroupNorm: {
      const auto op = ir::dynCast<aten::GroupNorm>(node);
      const int64_t n = op.input()->dim(0), c = op.input()->dim(1);
      if (n == 0 || c == 0) return false;
      const int64_t pixels = op.input()->numElements() / (n * c);
      result = aten::NativeGroupNorm::create(b, op.input(), op.weight(), op.bias(), n, c, pixels,
                                             op.numGroups(), op.eps())
                   ->result(0);
      break;
    }
    case OpId::BatchNorm: {
      const auto op = ir::dynCast<aten::BatchNorm>(node);
      if (op.training() || !op.runningMean() || !op.runningVar()) return false;
      result = aten::PrivateNativeBatchNormLegitNoTraining::create(b, op.input(), op.weight(), op.bias(),
                                                                   op.runningMean(), op.runningVar(),
                                                                   op.momentum(), op.eps())
                   ->result(0);
      break;
    }
    default:
      return false;
  }
  replaceNode(node, result);
  return true;
}

}  // namespace

void addPointwiseRewrites(std::vector<ir::Rewrite>& rewrites) {
  rewrites.insert(rewrites.end(), {rewriteActivation, rewriteBinary, rewriteWhereNumbers, rewriteHalves,
                                   rewriteReducedType, rewriteReduction, rewriteNorm});
}

}  // namespace carina::decompose::cpu
