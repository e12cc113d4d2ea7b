// SPDX-License-Identifier: Apache-2.0
// Norms that a network writes out: x * rsqrt(mean(x^2) + eps), x / max(|x|, eps), (x - mean) / sqrt(var +
// eps). They become layer_norm or rms_norm, which are lowered with an exponent per row, and a factor:
//
//   x / sqrt(a * mean(x^2) + b) = x / sqrt(mean(x^2) + b / a) / sqrt(a)
//
// a is the length of a row where the squares are summed, n / (n - 1) where the variance is unbiased. A guard
// outside of the root, max(root, g) or root + g, is replaced by g^2 inside. All three agree where the root is
// zero or large compared to g. Where it is near g, they differ by up to 29 % (max) or 41 % (sum).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "aten/ops.hpp"
#include "decompose/dims.hpp"
#include "decompose/norms.hpp"
#include "decompose/rewrites.hpp"
#include "ir/pass.hpp"

namespace carina::decompose {
ir::Value* unshaped(ir::Value* value) {
  while (ir::producerAs<aten::View>(value) || ir::producerAs<aten::Reshape>(value) ||
         ir::producerAs<aten::Unsqueeze>(value))
    value = value->producer()->operands()[0];
  return value;
}

namespace {

/// A mean or sum over dimensions.
struct Reduced {
  ir::Value* of = nullptr;
  ir::Ints dims;  // in ascending order
  bool isMean = false;

  int64_t count() const {
    int64_t count = 1;
    for (int64_t d : dims) count *= of->dim(d);
    return count;
  }
  /// Whether a tensor of this shape has one element for each reduced row of `of`, in its place.
  bool hasPlaces(const Shape& shape) const {
    Shape kept = of->shape();
    for (int64_t d : dims) kept[static_cast<size_t>(d)] = 1;
    return shape == kept || (numElements(shape) == 1 && numElements(kept) == 1);
  }
};

std::optional<Reduced> reducedBy(const ir::Value* value) {
  std::optional<ir::Ints> over;
  bool isMean = true;
  if (const auto mean = ir::producerAs<aten::MeanDim>(value)) {
    over = mean.dim();
  } else if (const auto sum = ir::producerAs<aten::SumDimIntList>(value)) {
    over = sum.dim();
    isMean = false;
  } else if (ir::producerAs<aten::Sum>(value)) {
    isMean = false;
  } else if (!ir::producerAs<aten::Mean>(value)) {
    return std::nullopt;
  }
  ir::Value* of = value->producer()->operands()[0];
  if (of->dtype() != DType::Float32 || value->dtype() != DType::Float32) return std::nullopt;
  const std::vector<int> dims = wrappedDims(over, of->rank());
  return Reduced{of, ir::Ints(dims.begin(), dims.end()), isMean};
}

/// The x of x - mean(x) over `dims`, or null.
ir::Value* centredOf(ir::Value* value, const ir::Ints& dims) {
  const auto difference = ir::producerAs<aten::SubTensor>(value);
  if (!difference || ir::scalarReal(difference.alpha()) != 1) return nullptr;
  const auto mean = reducedBy(unshaped(difference.other()));
  if (!mean || !mean->isMean || mean->of != difference.self() || mean->dims != dims ||
      !mean->hasPlaces(difference.other()->shape()))
    return nullptr;
  return difference.self();
}

/// The operand of which the value is the square, or null.
ir::Value* squaredOf(ir::Value* value) {
  if (const auto product = ir::producerAs<aten::MulTensor>(value))
    return product.self() == product.other() ? product.self() : nullptr;
  if (const auto square = ir::producerAs<aten::Square>(value)) return square.self();
  const auto power = ir::producerAs<aten::PowTensorScalar>(value);
  return power && ir::scalarReal(power.exponent()) == 2 ? power.self() : nullptr;
}

/// The x of x^exponent, or null.
ir::Value* powerOf(ir::Value* value, double exponent) {
  const auto power = ir::producerAs<aten::PowTensorScalar>(value);
  return power && ir::scalarReal(power.exponent()) == exponent ? power.self() : nullptr;
}

struct AtLeast {
  ir::Value* value = nullptr;
  double limit = 0;
};

/// max(value, limit), also as where(value <= limit, infinity, value): the divisor of rewriteDivision().
std::optional<AtLeast> atLeast(ir::Value* value) {
  if (const auto clamp = ir::producerAs<aten::ClampMin>(value))
    return AtLeast{clamp.self(), ir::scalarReal(clamp.min())};
  const auto isAbsent = [](const ir::Attribute& a) { return std::holds_alternative<std::monostate>(a); };
  if (const auto clamp = ir::producerAs<aten::Clamp>(value);
      clamp && isAbsent(clamp.max()) && !isAbsent(clamp.min()))
    return AtLeast{clamp.self(), ir::scalarReal(clamp.min())};
  const auto chosen = ir::producerAs<aten::WhereSelf>(value);
  const auto isNone = chosen ? ir::producerAs<aten::LeTensor>(chosen.condition()) : aten::LeTensor(nullptr);
  const auto isNumber = [](const ir::Value* v) { return v->isConstant() && v->numElements() == 1; };
  if (!isNone || isNone.self() != chosen.other() || !isNumber(isNone.other()) || !isNumber(chosen.self()) ||
      !std::isinf(chosen.self()->constant().realAt(0)))
    return std::nullopt;
  return AtLeast{chosen.other(), isNone.other()->constant().realAt(0)};
}

/// sqrt(factor * mean(squared^2) + eps). The square of a guard is part of eps.
struct Length {
  ir::Value* squared = nullptr;
  Reduced mean;
  double factor = 1, eps = 0, guard = 0;
  bool isGuardAdded = false;
};

/// From the value under the root.
std::optional<Length> rootOf(ir::Value* value) {
  Length length;
  for (;;) {
    value = unshaped(value);
    if (const auto sum = ir::producerAs<aten::AddScalar>(value)) {
      const double addend = ir::scalarReal(sum.alpha()) * ir::scalarReal(sum.other());
      if (!(addend >= 0)) return std::nullopt;
      length.eps += length.factor * addend;
      value = sum.self();
    } else if (const auto limited = atLeast(value)) {
      if (!(limited->limit >= 0)) return std::nullopt;
      length.eps += length.factor * limited->limit;
      length.guard = std::max(length.guard, std::sqrt(length.factor * limited->limit));
      value = limited->value;
    } else if (const auto product = ir::producerAs<aten::MulScalar>(value)) {
      length.factor *= ir::scalarReal(product.other());
      value = product.self();
    } else if (const auto quotient = ir::producerAs<aten::DivScalar>(value)) {
      length.factor /= ir::scalarReal(quotient.other());
      value = quotient.self();
    } else {
      break;
    }
    if (!(length.factor > 0) || !std::isfinite(length.factor)) return std::nullopt;
  }
  const auto mean = reducedBy(value);
  length.squared = mean ? squaredOf(mean->of) : nullptr;
  if (!length.squared || length.squared->shape() != mean->of->shape() || mean->dims.empty() ||
      mean->count() > kLongestRow)
    return std::nullopt;
  length.mean = *mean;
  if (!mean->isMean) length.factor *= static_cast<double>(mean->count());
  return length;
}

std::optional<Length> lengthOfDivisor(ir::Value* divisor) {
  divisor = unshaped(divisor);
  const auto guarded = [](ir::Value* root, double guard, bool isAdded) -> std::optional<Length> {
    auto length = guard > 0 ? lengthOfDivisor(root) : std::nullopt;
    if (!length || length->guard > 0) return std::nullopt;
    // Not 0 as a float: rows of zeros stay zero.
    length->eps += std::max<double>(guard * guard, std::numeric_limits<float>::min() * length->factor);
    length->guard = guard;
    length->isGuardAdded = isAdded;
    return length;
  };
  if (const auto root = ir::producerAs<aten::Sqrt>(divisor)) return rootOf(root.self());
  if (ir::Value* under = powerOf(divisor, 0.5)) return rootOf(under);
  if (const auto limited = atLeast(divisor)) return guarded(limited->value, limited->limit, false);
  const auto sum = ir::producerAs<aten::AddScalar>(divisor);
  if (sum && ir::scalarReal(sum.alpha()) == 1) return guarded(sum.self(), ir::scalarReal(sum.other()), true);
  return std::nullopt;
}

/// The length of 1 / length, or null.
std::optional<Length> lengthOfFactor(ir::Value* factor) {
  factor = unshaped(factor);
  if (const auto rsqrt = ir::producerAs<aten::Rsqrt>(factor)) return rootOf(rsqrt.self());
  if (ir::Value* under = powerOf(factor, -0.5)) return rootOf(under);
  const auto reciprocal = ir::producerAs<aten::Reciprocal>(factor);
  return reciprocal ? lengthOfDivisor(reciprocal.self()) : std::nullopt;
}

/// x / length as a norm of `of`.
struct Norm {
  ir::Value* of = nullptr;
  Centred centred = Centred::No;
};

/// The norm of x, or of the tensor from which x is the distance to the mean; none if the length is that of
/// other rows.
std::optional<Norm> normOf(ir::Value* x, const Length& length) {
  const ir::Ints& dims = length.mean.dims;
  ir::Value* source = centredOf(x, dims);
  const ir::Value* squared = source && length.squared != x ? centredOf(length.squared, dims) : nullptr;
  if (source && (length.squared == x || squared == source || squared == x)) return Norm{source, Centred::Yes};
  return length.squared == x ? std::optional(Norm{x, Centred::No}) : std::nullopt;
}

/// The divisor of node = dividend / length, or node = dividend * (1 / length); null for other operators.
ir::Value* divisorOf(const ir::Node& node, size_t dividend) {
  if (node.result()->dtype() != DType::Float32 || (!ir::isa<aten::MulTensor>(&node) && dividend != 0) ||
      (!ir::isa<aten::MulTensor>(&node) && !ir::isa<aten::DivTensor>(&node)) ||
      node.operands()[dividend]->shape() != node.result()->shape())
    return nullptr;
  ir::Value* divisor = node.operands()[1 - dividend];
  ir::Value* narrow = expandedFrom(divisor);
  return narrow ? narrow : divisor;
}

/// The norm that a product or quotient is the last operator of; null if it is none. The dividend may also be
/// a product of the rows and something else.
template <typename Predicate>
ir::Value* writtenNorm(ir::Builder& b, ir::Node* node, const Predicate& accepts) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    ir::Value* divisor = node->operands().size() == 2 ? divisorOf(*node, i) : nullptr;
    if (!divisor) continue;
    const auto length = ir::isa<aten::DivTensor>(node) ? lengthOfDivisor(divisor) : lengthOfFactor(divisor);
    if (!length || !length->mean.hasPlaces(divisor->shape())) continue;
    ir::Value *dividend = node->operands()[i], *other = nullptr;
    auto norm = normOf(dividend, *length);
    const auto product = ir::producerAs<aten::MulTensor>(dividend);
    for (const size_t j : {size_t{0}, size_t{1}}) {
      if (norm || !product) break;
      norm = normOf(product->operands()[j], *length);
      other = product->operands()[1 - j];
    }
    if (!norm || !accepts(*norm, *length)) continue;
    ir::Value* result =
        normalizedOver(b, norm->of, length->mean.dims, length->eps / length->factor, norm->centred);
    if (length->factor != 1) result = aten::MulScalar::create(b, result, 1 / std::sqrt(length->factor));
    return other ? aten::MulTensor::create(b, other, result) : result;
  }
  return nullptr;
}

ir::Value* rewriteWrittenNorm(ir::Builder& b, ir::Node* node) {
  // As in F.normalize() (1e-12) and cosine_similarity() (1e-8): codes of rows are far apart in comparison.
  constexpr double kNoLength = 1e-8;
  return writtenNorm(b, node, [](const Norm&, const Length& length) {
    return length.guard == 0 || (!length.isGuardAdded && length.guard <= kNoLength);
  });
}

}  // namespace

ir::Value* normalizedOver(ir::Builder& b, ir::Value* x, const ir::Ints& dims, double eps, Centred centred) {
  const int64_t rank = x->rank();
  ir::Ints order;  // the other dimensions first
  for (int64_t d = 0; d < rank; ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  }
  order.insert(order.end(), dims.begin(), dims.end());
  const bool moved = !std::is_sorted(order.begin(), order.end());
  ir::Value* rows = moved ? aten::Permute::create(b, x, order) : x;
  const Shape& shape = rows->shape();
  ir::Ints last(shape.end() - static_cast<std::ptrdiff_t>(dims.size()), shape.end());
  ir::Value* norm = centred == Centred::Yes
                        ? aten::LayerNorm::create(b, rows, nullptr, nullptr, std::move(last), eps, false)
                        : aten::RmsNorm::create(b, rows, nullptr, std::move(last), eps);
  if (!moved) return norm;
  ir::Ints back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return aten::Permute::create(b, norm, back);
}

Status useGuardedNorms(ir::Graph& graph, const IsNegligible& isNegligible) {
  const auto accepts = [&](const Norm& norm, const Length& length) {
    return isNegligible(*norm.of, length.guard / std::sqrt(length.factor));
  };
  const ir::Rewrite rewrite = [&](ir::Node* node) -> Result<bool> {
    ir::Builder b = ir::Builder::beforeNode(node);
    ir::Value* norm = writtenNorm(b, node, accepts);
    if (norm) replaceNode(node, norm);
    return norm != nullptr;
  };
  return ir::rewriteToFixpoint(graph, std::array{rewrite});
}

void addWrittenNormRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteWrittenNorm);
}

}  // namespace carina::decompose
