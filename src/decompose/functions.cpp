// SPDX-License-Identifier: Apache-2.0
// Functions of one, two or three tensors that consist of a few simpler ones: hypot, logaddexp, lerp, round to
// decimals, products over a dimension, ...
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "aten/ops.hpp"
#include "decompose/arithmetic.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

using aten::OpId;

ir::Value* isZero(ir::Builder& b, ir::Value* x) {
  return aten::EqScalar::create(b, x, 0.0);
}
ir::Value* isNegative(ir::Builder& b, ir::Value* x) {
  return aten::LtScalar::create(b, x, 0.0);
}

bool allFloat(const ir::Node& node) {
  const auto isSingle = [](const ir::Value* v) { return !v || v->dtype() == DType::Float32; };
  return std::all_of(node.operands().begin(), node.operands().end(), isSingle) && isSingle(node.result());
}

/// max(x, y) + log_base(1 + base^-|x - y|), computed with natural logarithms
ir::Value* logOfSum(ir::Builder& b, ir::Value* x, ir::Value* y, bool binary) {
  ir::Value* apart = aten::Neg::create(b, aten::Abs::create(b, sub(b, x, y)));
  ir::Value* power = binary ? aten::Exp2::create(b, apart) : aten::Exp::create(b, apart);
  ir::Value* rest = aten::Log1p::create(b, power);
  if (binary) rest = mul(b, rest, std::numbers::log2e);
  return add(b, aten::Maximum::create(b, x, y), rest);
}

/// |x| with a sign where `negative` holds.
ir::Value* signedAs(ir::Builder& b, ir::Value* x, ir::Value* negative) {
  ir::Value* magnitude = aten::Abs::create(b, x);
  return where(b, negative, aten::Neg::create(b, magnitude), magnitude);
}

/// Expresses an operator on float tensors by others; null if it is none of these.
ir::Value* functionOf(ir::Builder& b, const ir::Node& node) {
  ir::Value* x = node.operands()[0];
  ir::Value* y = node.operands().size() > 1 ? node.operands()[1] : nullptr;
  switch (aten::opId(&node)) {
    case OpId::Deg2rad:
      return mul(b, x, std::numbers::pi / 180);
    case OpId::Rad2deg:
      return mul(b, x, 180 / std::numbers::pi);
    case OpId::Hypot:
      return aten::Sqrt::create(b, add(b, mul(b, x, x), mul(b, y, y)));
    case OpId::Logaddexp:
      return logOfSum(b, x, y, false);
    case OpId::Logaddexp2:
      return logOfSum(b, x, y, true);
    case OpId::XlogyTensor:
      return where(b, isZero(b, x), number(b, 0, 0), mul(b, x, aten::Log::create(b, y)));
    case OpId::Heaviside:
      return where(b, isZero(b, x), y, where(b, isNegative(b, x), number(b, 0, 0), number(b, 1, 0)));
    case OpId::CopysignTensor:
      return signedAs(b, x, aten::Signbit::create(b, y));
    case OpId::CopysignScalar: {
      ir::Value* magnitude = aten::Abs::create(b, x);
      const bool negative = std::signbit(ir::scalarReal(ir::cast<aten::CopysignScalar>(&node).other()));
      return negative ? aten::Neg::create(b, magnitude) : magnitude;
    }
    case OpId::LerpScalar:
      return add(b, x, mul(b, sub(b, y, x), ir::scalarReal(ir::cast<aten::LerpScalar>(&node).weight())));
    case OpId::LerpTensor:
      return add(b, x, mul(b, sub(b, y, x), node.operands()[2]));
    case OpId::RoundDecimals: {
      // Divides by the power of ten instead of multiplying by its inverse, to round like PyTorch.
      const int64_t decimals = ir::cast<aten::RoundDecimals>(&node).decimals();
      const double power = std::pow(10.0, static_cast<double>(std::abs(decimals)));
      const auto grown = [&](ir::Value* v) { return mul(b, v, power); };
      const auto shrunk = [&](ir::Value* v) { return aten::DivScalar::create(b, v, power); };
      ir::Value* whole = aten::Round::create(b, decimals < 0 ? shrunk(x) : grown(x));
      return decimals < 0 ? grown(whole) : shrunk(whole);
    }
    default:
      return nullptr;
  }
}

ir::Value* rewriteFunction(ir::Builder& b, ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().empty() || node->results().size() != 1 ||
      isQuantizedAsUnit(*node) || !allFloat(*node))
    return nullptr;
  return functionOf(b, *node);
}

/// Powers with a single number as base or exponent.
ir::Value* rewritePower(ir::Builder& b, aten::PowTensorTensor op) {
  if (isQuantizedAsUnit(op) || !allFloat(*op.node())) return nullptr;
  const auto one = [&](const ir::Value* value, const ir::Value* other) {
    return value->isConstant() && value->numElements() == 1 && other->shape() == op->result()->shape();
  };
  if (one(op.exponent(), op.self()))
    return aten::PowTensorScalar::create(b, op.self(), op.exponent()->constant().realAt(0));
  if (one(op.self(), op.exponent()))
    return aten::PowScalar::create(b, op.exponent(), op.self()->constant().realAt(0));
  return nullptr;
}

bool isSquare(const ir::Value* value) {
  const auto product = ir::producerAs<aten::MulTensor>(value);
  return product && product.self() == product.other();
}

/// sqrt(x)^2 = x for the magnitudes of complex numbers: re^2 + im^2 is their power.
ir::Value* rewriteSquaredRoot(ir::Builder&, aten::PowTensorScalar op) {
  const auto root = ir::producerAs<aten::Sqrt>(op.self());
  if (isQuantizedAsUnit(op) || !root || ir::scalarReal(op.exponent()) != 2) return nullptr;
  const auto sum = ir::producerAs<aten::AddTensor>(root.self());
  const bool squares =
      sum && ir::scalarReal(sum.alpha()) == 1 && isSquare(sum.self()) && isSquare(sum.other());
  return squares && root.self()->type == op.node()->result()->type ? root.self() : nullptr;
}

/// max + log(sum(exp(x - max))). An infinite maximum must not be subtracted from itself.
ir::Value* rewriteLogSumExp(ir::Builder& b, aten::Logsumexp op) {
  if (isQuantizedAsUnit(op) || !allFloat(*op.node()) || op.self()->numElements() == 0) return nullptr;
  constexpr double kMost = std::numeric_limits<float>::max();
  const ir::Ints dims = op.dim().empty() ? numbersBelow(op.self()->rank()) : op.dim();
  ir::Value* largest = aten::Amax::create(b, op.self(), dims, true);
  largest = aten::Clamp::create(b, largest, -kMost, kMost);
  ir::Value* powers = aten::Exp::create(b, sub(b, op.self(), largest));
  ir::Value* sum = aten::SumDimIntList::create(b, powers, dims, true);
  ir::Value* result = add(b, largest, aten::Log::create(b, sum));
  return aten::View::create(b, result, op->result()->shape());
}

/// Largest and smallest of all elements as reductions over all dimensions.
ir::Value* rewriteExtremeOfAll(ir::Builder& b, ir::Node* node) {
  const bool largest = ir::isa<aten::Max>(node);
  if ((!largest && !ir::isa<aten::Min>(node)) || node->operands()[0]->rank() == 0) return nullptr;
  ir::Value* self = node->operands()[0];
  const ir::Ints dims = numbersBelow(self->rank());
  return largest ? aten::Amax::create(b, self, dims) : aten::Amin::create(b, self, dims);
}

/// Norms of orders other than 1, 2 and infinity: the number of elements that are not 0, the smallest
/// magnitude, (sum |x|^p)^(1/p).
Result<ir::Value*> rewriteOtherNorm(ir::Builder& b, aten::LinalgVectorNorm op) {
  if (isQuantizedAsUnit(op) || !allFloat(*op.node())) return nullptr;
  const double order = ir::scalarReal(op.ord());
  if (order == 1 || order == 2 || (std::isinf(order) && order > 0)) return nullptr;
  const auto sum = [&](ir::Value* x) { return aten::SumDimIntList::create(b, x, op.dim(), op.keepdim()); };
  ir::Value* result = nullptr;
  if (order == 0) {
    result = sum(where(b, isZero(b, op.self()), number(b, 0, 0), number(b, 1, 0)));
  } else {
    ir::Value* magnitude = aten::Abs::create(b, op.self());
    if (std::isinf(order)) {
      result = aten::Amin::create(b, magnitude, op.dim().value_or(ir::Ints{}), op.keepdim());
    } else {
      ir::Value* powers = aten::PowTensorScalar::create(b, magnitude, order);
      result = aten::PowTensorScalar::create(b, sum(powers), 1 / order);
    }
  }
  if (result->type != op->result()->type)
    return fail(Code::UnsupportedForm, "the result of a norm of order {} has an unexpected shape", order);
  return result;
}

/// Sum and mean of the elements that are not NaN.
ir::Value* rewriteWithoutNan(ir::Builder& b, ir::Node* node) {
  const auto sum = ir::dynCast<aten::Nansum>(node);
  const auto mean = ir::dynCast<aten::Nanmean>(node);
  if ((!sum && !mean) || isQuantizedAsUnit(*node) || !allFloat(*node)) return nullptr;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ir::Value* x = node->operands()[0];
  const std::optional<ir::Ints> dims = sum ? sum.dim() : mean.dim();
  const bool keepdim = sum ? sum.keepdim() : mean.keepdim();
  const auto total = [&](ir::Value* v) { return aten::SumDimIntList::create(b, v, dims, keepdim); };
  ir::Value* result = total(aten::NanToNum::create(b, x, 0.0, kInfinity, -kInfinity));
  if (mean) {
    ir::Value* isNan = aten::Isnan::create(b, x);
    ir::Value* count = total(where(b, isNan, number(b, 0, 0), number(b, 1, 0)));
    result = aten::DivTensor::create(b, result, count);
  }
  return result;
}

/// Variance or standard deviation, and the mean of the same elements.
ir::Value* rewriteWithMean(ir::Builder& b, ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().empty() || isQuantizedAsUnit(*node)) return nullptr;
  std::optional<ir::Ints> dims;
  ir::Attribute correction = int64_t{1};
  bool keepdim = false, root = false;
  if (const auto op = ir::dynCast<aten::VarMeanCorrection>(node)) {
    dims = op.dim(), correction = op.correction(), keepdim = op.keepdim();
  } else if (const auto std = ir::dynCast<aten::StdMeanCorrection>(node)) {
    dims = std.dim(), correction = std.correction(), keepdim = std.keepdim(), root = true;
  } else if (const auto along = ir::dynCast<aten::VarMeanDim>(node)) {
    dims = along.dim(), correction = int64_t{along.unbiased()}, keepdim = along.keepdim();
  } else if (const auto stdAlong = ir::dynCast<aten::StdMeanDim>(node)) {
    dims = stdAlong.dim(), correction = int64_t{stdAlong.unbiased()}, keepdim = stdAlong.keepdim();
    root = true;
  } else if (const auto all = ir::dynCast<aten::VarMean>(node)) {
    correction = int64_t{all.unbiased()};
  } else if (const auto stdAll = ir::dynCast<aten::StdMean>(node)) {
    correction = int64_t{stdAll.unbiased()}, root = true;
  } else {
    return nullptr;
  }
  ir::Value* self = node->operands()[0];
  if (self->dtype() != DType::Float32) return nullptr;
  if (!dims || dims->empty()) dims = numbersBelow(self->rank());
  ir::Value* mean = aten::MeanDim::create(b, self, *dims, keepdim);
  std::swap(mean->name, node->result(1)->name);
  node->graph().replaceAllUses(node->result(1), mean);
  return root ? aten::StdCorrection::create(b, self, dims, correction, keepdim)
              : aten::VarCorrection::create(b, self, dims, correction, keepdim);
}

// Longest product that is computed by multiplying halves; longer ones stay on the CPU, since their many
// roundings would leave little precision.
constexpr int64_t kLongestProduct = 64;

/// The product along a dimension: halves are multiplied until one element is left.
ir::Value* rewriteProduct(ir::Builder& b, ir::Node* node) {
  const auto along = ir::dynCast<aten::ProdDimInt>(node);
  if ((!along && !ir::isa<aten::Prod>(node)) || isQuantizedAsUnit(*node)) return nullptr;
  const DType dtype = node->result()->dtype();
  if (dtype == DType::Bool) return nullptr;  // whether all are true
  if (!allFloat(*node) && (isFloat(dtype) || isFloat(node->operands()[0]->dtype()))) return nullptr;
  ir::Value* x = node->operands()[0];
  if (x->dtype() != dtype) x = aten::PrivateToCopy::create(b, x, dtype);
  if (!along) x = aten::View::create(b, x, ir::Ints{x->numElements()});
  const int64_t dim = along ? wrapped(along.dim(), x->rank()) : 0;
  if (x->rank() == 0 || x->dim(dim) == 0 || x->dim(dim) > kLongestProduct) return nullptr;
  const auto part = [&](int64_t from, int64_t to) { return aten::SliceTensor::create(b, x, dim, from, to); };
  while (x->dim(dim) > 1) {
    const int64_t size = x->dim(dim), half = size / 2;
    ir::Value* product = mul(b, part(0, half), part(half, 2 * half));
    x = size % 2 == 0 ? product : aten::Cat::create(b, {product, part(2 * half, size)}, dim);
  }
  return aten::View::create(b, x, node->result()->shape());
}

}  // namespace

void addFunctionRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteFunction, rewritePower, rewriteSquaredRoot, rewriteLogSumExp,
              rewriteExtremeOfAll, rewriteOtherNorm, rewriteWithoutNan, rewriteWithMean, rewriteProduct);
}

}  // namespace carina::decompose
