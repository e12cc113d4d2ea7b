// SPDX-License-Identifier: Apache-2.0
// Functions of one, two or three tensors that are a few simpler ones: hypot, logaddexp, lerp, round to
// decimals, products over a dimension, ...
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

using aten::OpId;

ir::Value* add(ir::Builder& b, ir::Value* x, ir::Value* y) {
  return aten::AddTensor::create(b, x, y, int64_t{1}).output();
}
ir::Value* sub(ir::Builder& b, ir::Value* x, ir::Value* y) {
  return aten::SubTensor::create(b, x, y, int64_t{1}).output();
}
ir::Value* mul(ir::Builder& b, ir::Value* x, ir::Value* y) {
  return aten::MulTensor::create(b, x, y).output();
}
ir::Value* times(ir::Builder& b, ir::Value* x, double factor) {
  return aten::MulScalar::create(b, x, factor).output();
}
ir::Value* where(ir::Builder& b, ir::Value* condition, ir::Value* yes, ir::Value* no) {
  return aten::WhereSelf::create(b, condition, yes, no).output();
}
ir::Value* isZero(ir::Builder& b, ir::Value* x) {
  return aten::EqScalar::create(b, x, 0.0).output();
}
ir::Value* isNegative(ir::Builder& b, ir::Value* x) {
  return aten::LtScalar::create(b, x, 0.0).output();
}

bool allFloat(const ir::Node& node) {
  const auto isSingle = [](const ir::Value* v) { return !v || v->dtype() == DType::Float32; };
  return std::all_of(node.operands().begin(), node.operands().end(), isSingle) && isSingle(node.result());
}

/// max(x, y) + log(1 + base^-|x - y|), in natural logarithms
ir::Value* logOfSum(ir::Builder& b, ir::Value* x, ir::Value* y, bool binary) {
  ir::Value* apart = aten::Neg::create(b, aten::Abs::create(b, sub(b, x, y)).output()).output();
  ir::Value* power = binary ? aten::Exp2::create(b, apart).output() : aten::Exp::create(b, apart).output();
  ir::Value* rest = aten::Log1p::create(b, power).output();
  if (binary) rest = times(b, rest, std::numbers::log2e);
  return add(b, aten::Maximum::create(b, x, y).output(), rest);
}

/// |x| with a sign where `negative` holds.
ir::Value* signedAs(ir::Builder& b, ir::Value* x, ir::Value* negative) {
  ir::Value* magnitude = aten::Abs::create(b, x).output();
  return where(b, negative, aten::Neg::create(b, magnitude).output(), magnitude);
}

/// What an operator of float tensors is in terms of others; null when it is none of these.
ir::Value* functionOf(ir::Builder& b, const ir::Node& node) {
  ir::Value* x = node.operands()[0];
  ir::Value* y = node.operands().size() > 1 ? node.operands()[1] : nullptr;
  switch (aten::opId(&node)) {
    case OpId::Deg2rad:
      return times(b, x, std::numbers::pi / 180);
    case OpId::Rad2deg:
      return times(b, x, 180 / std::numbers::pi);
    case OpId::Hypot:
      return aten::Sqrt::create(b, add(b, mul(b, x, x), mul(b, y, y))).output();
    case OpId::Logaddexp:
      return logOfSum(b, x, y, false);
    case OpId::Logaddexp2:
      return logOfSum(b, x, y, true);
    case OpId::XlogyTensor:
      return where(b, isZero(b, x), number(b, 0, 0), mul(b, x, aten::Log::create(b, y).output()));
    case OpId::Heaviside:
      return where(b, isZero(b, x), y, where(b, isNegative(b, x), number(b, 0, 0), number(b, 1, 0)));
    case OpId::CopysignTensor:
      return signedAs(b, x, aten::Signbit::create(b, y).output());
    case OpId::CopysignScalar: {
      ir::Value* magnitude = aten::Abs::create(b, x).output();
      const bool negative = std::signbit(ir::scalarReal(ir::dynCast<aten::CopysignScalar>(&node).other()));
      return negative ? aten::Neg::create(b, magnitude).output() : magnitude;
    }
    case OpId::LerpScalar:
      return add(b, x, times(b, sub(b, y, x), ir::scalarReal(ir::dynCast<aten::LerpScalar>(&node).weight())));
    case OpId::LerpTensor:
      return add(b, x, mul(b, sub(b, y, x), node.operands()[2]));
    case OpId::RoundDecimals: {
      // Divided by the power of ten rather than multiplied by its inverse, as PyTorch rounds.
      const int64_t decimals = ir::dynCast<aten::RoundDecimals>(&node).decimals();
      const double power = std::pow(10.0, static_cast<double>(std::abs(decimals)));
      const auto grown = [&](ir::Value* v) { return times(b, v, power); };
      const auto shrunk = [&](ir::Value* v) { return aten::DivScalar::create(b, v, power).output(); };
      ir::Value* whole = aten::Round::create(b, decimals < 0 ? shrunk(x) : grown(x)).output();
      return decimals < 0 ? grown(whole) : shrunk(whole);
    }
    default:
      return nullptr;
  }
}

Result<bool> rewriteFunction(ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().empty() || node->results().size() != 1 ||
      isQuantizedWhole(*node) || !allFloat(*node))
    return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* result = functionOf(b, *node);
  if (!result) return false;
  replaceNode(node, result);
  return true;
}

/// Powers of which one side is one number.
Result<bool> rewritePower(ir::Node* node) {
  const auto op = ir::dynCast<aten::PowTensorTensor>(node);
  if (!op || isQuantizedWhole(*node) || !allFloat(*node)) return false;
  const auto one = [&](const ir::Value* value, const ir::Value* other) {
    return value->isConstant() && value->numElements() == 1 && other->shape() == node->result()->shape();
  };
  ir::Builder b = ir::Builder::beforeNode(node);
  if (one(op.exponent(), op.self())) {
    replaceNode(node,
                aten::PowTensorScalar::create(b, op.self(), op.exponent()->constant().realAt(0)).output());
  } else if (one(op.self(), op.exponent())) {
    replaceNode(node, aten::PowScalar::create(b, op.exponent(), op.self()->constant().realAt(0)).output());
  } else {
    return false;
  }
  return true;
}

/// max + log(sum(exp(x - max))). A maximum that is infinite must not be subtracted from itself.
Result<bool> rewriteLogSumExp(ir::Node* node) {
  const auto op = ir::dynCast<aten::Logsumexp>(node);
  if (!op || isQuantizedWhole(*node) || !allFloat(*node) || op.self()->numElements() == 0) return false;
  constexpr double kMost = std::numeric_limits<float>::max();
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Ints dims = op.dim();
  if (dims.empty()) {
    for (int64_t d = 0; d < op.self()->rank(); ++d) dims.push_back(d);
  }
  ir::Value* largest = aten::Amax::create(b, op.self(), dims, true).output();
  largest = aten::Clamp::create(b, largest, -kMost, kMost).output();
  ir::Value* powers = aten::Exp::create(b, sub(b, op.self(), largest)).output();
  ir::Value* sum = aten::SumDimIntList::create(b, powers, dims, true, std::nullopt).output();
  ir::Value* result = add(b, largest, aten::Log::create(b, sum).output());
  replaceNode(node, aten::View::create(b, result, node->result()->shape()).output());
  return true;
}

/// Largest and smallest of all elements as reductions over all dimensions.
Result<bool> rewriteExtremeOfAll(ir::Node* node) {
  const bool largest = ir::isa<aten::Max>(node);
  if ((!largest && !ir::isa<aten::Min>(node)) || node->operands()[0]->rank() == 0) return false;
  ir::Ints dims;
  for (int64_t d = 0; d < node->operands()[0]->rank(); ++d) dims.push_back(d);
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* self = node->operands()[0];
  replaceNode(node, largest ? aten::Amax::create(b, self, dims, false).output()
                            : aten::Amin::create(b, self, dims, false).output());
  return true;
}

/// Norms of orders other than 1, 2 and infinity: the number of elements that are not 0, the smallest
/// magnitude, (sum |x|^p)^(1/p).
Result<bool> rewriteOtherNorm(ir::Node* node) {
  const auto op = ir::dynCast<aten::LinalgVectorNorm>(node);
  if (!op || isQuantizedWhole(*node) || !allFloat(*node)) return false;
  const double order = ir::scalarReal(op.ord());
  if (order == 1 || order == 2 || (std::isinf(order) && order > 0)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  const auto sum = [&](ir::Value* x) {
    return aten::SumDimIntList::create(b, x, op.dim(), op.keepdim(), std::nullopt).output();
  };
  ir::Value* result = nullptr;
  if (order == 0) {
    result = sum(where(b, isZero(b, op.self()), number(b, 0, 0), number(b, 1, 0)));
  } else {
    ir::Value* magnitude = aten::Abs::create(b, op.self()).output();
    if (std::isinf(order)) {
      result = aten::Amin::create(b, magnitude, op.dim().value_or(ir::Ints{}), op.keepdim()).output();
    } else {
      ir::Value* powers = aten::PowTensorScalar::create(b, magnitude, order).output();
      result = aten::PowTensorScalar::create(b, sum(powers), 1 / order).output();
    }
  }
  if (result->type != node->result()->type)
    return fail(Code::UnsupportedForm, "a norm of order {} has another shape", order);
  replaceNode(node, result);
  return true;
}

/// Sum and mean of the elements that are numbers.
Result<bool> rewriteWithoutNan(ir::Node* node) {
  const auto sum = ir::dynCast<aten::Nansum>(node);
  const auto mean = ir::dynCast<aten::Nanmean>(node);
  if ((!sum && !mean) || isQuantizedWhole(*node) || !allFloat(*node)) return false;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ir::Value* x = node->operands()[0];
  const std::optional<ir::Ints> dims = sum ? sum.dim() : mean.dim();
  const bool keepdim = sum ? sum.keepdim() : mean.keepdim();
  ir::Builder b = ir::Builder::beforeNode(node);
  const auto total = [&](ir::Value* v) {
    return aten::SumDimIntList::create(b, v, dims, keepdim, std::nullopt).output();
  };
  ir::Value* result = total(aten::NanToNum::create(b, x, 0.0, kInfinity, -kInfinity).output());
  if (mean) {
    ir::Value* isNan = aten::Isnan::create(b, x).output();
    ir::Value* count = total(where(b, isNan, number(b, 0, 0), number(b, 1, 0)));
    result = aten::DivTensor::create(b, result, count).output();
  }
  replaceNode(node, result);
  return true;
}

/// Variance or standard deviation, and the mean of the same elements.
Result<bool> rewriteWithMean(ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().empty() || isQuantizedWhole(*node)) return false;
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
    return false;
  }
  ir::Value* self = node->operands()[0];
  if (self->dtype() != DType::Float32) return false;
  if (!dims || dims->empty()) {
    dims.emplace();
    for (int64_t d = 0; d < self->rank(); ++d) dims->push_back(d);
  }
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* mean = aten::MeanDim::create(b, self, *dims, keepdim, std::nullopt).output();
  std::swap(mean->name, node->result(1)->name);
  node->graph().replaceAllUses(node->result(1), mean);
  replaceNode(node, root ? aten::StdCorrection::create(b, self, dims, correction, keepdim).output()
                         : aten::VarCorrection::create(b, self, dims, correction, keepdim).output());
  return true;
}

// Halves are multiplied with each other this often at most; longer products stay with the CPU, and so many
// roundings would leave little of them.
constexpr int64_t kLongestProduct = 64;

/// The product along a dimension: of its halves, until one element is left.
Result<bool> rewriteProduct(ir::Node* node) {
  const auto along = ir::dynCast<aten::ProdDimInt>(node);
  if ((!along && !ir::isa<aten::Prod>(node)) || isQuantizedWhole(*node)) return false;
  const DType dtype = node->result()->dtype();
  if (dtype == DType::Bool) return false;  // whether all are true
  if (!allFloat(*node) && (isFloat(dtype) || isFloat(node->operands()[0]->dtype()))) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* x = node->operands()[0];
  if (x->dtype() != dtype) x = aten::PrivateToCopy::create(b, x, dtype, {}, {}, {}, false, {}).output();
  if (!along) x = aten::View::create(b, x, ir::Ints{x->numElements()}).output();
  const int64_t rank = x->rank(), dim = along && along.dim() < 0 ? along.dim() + rank
                                        : along                  ? along.dim()
                                                                 : 0;
  if (rank == 0 || x->dim(dim) == 0 || x->dim(dim) > kLongestProduct) return false;
  const auto part = [&](int64_t from, int64_t to) {
    return aten::SliceTensor::create(b, x, dim, from, to, int64_t{1}).output();
  };
  while (x->dim(dim) > 1) {
    const int64_t size = x->dim(dim), half = size / 2;
    ir::Value* product = mul(b, part(0, half), part(half, 2 * half));
    x = size % 2 == 0 ? product : aten::Cat::create(b, {product, part(2 * half, size)}, dim).output();
  }
  replaceNode(node, aten::View::create(b, x, node->result()->shape()).output());
  return true;
}

}  // namespace

void addFunctionRewrites(std::vector<ir::Rewrite>& rewrites) {
  rewrites.insert(rewrites.end(), {rewriteFunction, rewritePower, rewriteLogSumExp, rewriteExtremeOfAll,
                                   rewriteOtherNorm, rewriteWithoutNan, rewriteWithMean, rewriteProduct});
}

}  // namespace carina::decompose
