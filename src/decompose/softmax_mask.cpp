// SPDX-License-Identifier: Apache-2.0
#include "decompose/softmax_mask.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

constexpr float kHides = -100;
// Factors of at most this turn 0 and 1 into an addend that hides scores.
constexpr double kHidingFactor = -1000;

bool isRealConstant(const ir::Value* value) {
  return value->isConstant() && value->dtype() == DType::Float32;
}

/// Whether a constant hides every score that it applies to.
bool hidesAll(const ir::Value* value) {
  if (!isRealConstant(value)) return false;
  const auto values = value->constant().as<float>();
  return std::all_of(values.begin(), values.end(), [](float x) { return x <= kHides; });
}

bool isZero(const ir::Value* value) {
  if (!isRealConstant(value)) return false;
  const auto values = value->constant().as<float>();
  return std::all_of(values.begin(), values.end(), [](float x) { return x == 0; });
}

ir::Value* either(ir::Builder& b, ir::Value* x, ir::Value* y) {
  if (!x || !y) return x ? x : y;
  return aten::LogicalOr::create(b, x, y);
}

ir::Value* opposite(ir::Builder& b, ir::Value* x) {
  return aten::LogicalNot::create(b, x);
}

/// The operand of an operator that returns the same elements in another shape.
ir::Value* reshapedFrom(const ir::Value* value) {
  const ir::Node* node = value->producer();
  if (!node || !aten::isOperator(node)) return nullptr;
  using aten::OpId;
  switch (aten::opId(node)) {
    case OpId::View:
    case OpId::Reshape:
    case OpId::FlattenUsingInts:
    case OpId::UnflattenInt:
    case OpId::Unsqueeze:
    case OpId::Squeeze:
    case OpId::SqueezeDim:
    case OpId::SqueezeDims:
      return node->operands()[0];
    default:
      return nullptr;
  }
}

ir::Value* reshaped(ir::Builder& b, ir::Value* value, const Shape& shape) {
  return value ? aten::View::create(b, value, shape).output() : nullptr;
}
ir::Value* expanded(ir::Builder& b, ir::Value* value, const Shape& shape) {
  return value ? aten::Expand::create(b, value, shape).output() : nullptr;
}

/// An addend of scores: where it hides, and what it adds elsewhere (null: nothing).
struct Addend {
  ir::Value* hidden = nullptr;
  ir::Value* rest = nullptr;
};

std::optional<Addend> constantAddend(ir::Builder& b, const ir::Value* value) {
  const auto values = value->constant().as<float>();
  if (std::none_of(values.begin(), values.end(), [](float x) { return x <= kHides; })) return std::nullopt;
  Tensor hidden = Tensor::zeros(DType::Bool, value->shape());
  Tensor rest = Tensor::zeros(DType::Float32, value->shape());
  const auto hides = hidden.mutableAs<uint8_t>();
  const auto adds = rest.mutableAs<float>();
  bool any = false;
  for (size_t i = 0; i < values.size(); ++i) {
    hides[i] = values[i] <= kHides;
    adds[i] = hides[i] != 0 ? 0.0f : values[i];
    any |= adds[i] != 0;
  }
  return Addend{b.constant(std::move(hidden)), any ? b.constant(std::move(rest)) : nullptr};
}

/// A mask that is a network input hides where it is at most -100. The clamp limits what calibration sees of
/// infinite values.
Addend inputAddend(ir::Builder& b, ir::Value* mask) {
  ir::Value* clamped = aten::ClampMin::create(b, mask, 2.0 * kHides);
  ir::Value* hidden = aten::LeTensor::create(b, clamped, number(b, kHides, 0));
  return {hidden, aten::WhereSelf::create(b, hidden, number(b, 0, 0), clamped)};
}

/// Applies the lookup of `value` in a constant table to another table; null if the value is not a lookup.
ir::Value* lookedUp(ir::Builder& b, const ir::Value* value, ir::Value* table) {
  if (const auto index = ir::producerAs<aten::IndexTensor>(value))
    return aten::IndexTensor::create(b, table, {index.indices().begin(), index.indices().end()});
  if (const auto select = ir::producerAs<aten::IndexSelect>(value))
    return aten::IndexSelect::create(b, table, select.index(), select.dim());
  return nullptr;
}

/// Rows of a table of masks, at positions that are known at run time: a separate table indicates where they
/// hide.
std::optional<Addend> lookupAddend(ir::Builder& b, const ir::Value* value) {
  const ir::Value* table = value->producer() && !value->producer()->operands().empty()
                               ? value->producer()->operands()[0]
                               : nullptr;
  if (!table || !isRealConstant(table) ||
      (!ir::producerAs<aten::IndexTensor>(value) && !ir::producerAs<aten::IndexSelect>(value)))
    return std::nullopt;
  const auto inner = constantAddend(b, table);
  if (!inner) return std::nullopt;
  ir::Value* hides = lookedUp(b, value, b.constant(convert(inner->hidden->constant(), DType::Float32)));
  return Addend{aten::GtTensor::create(b, hides, number(b, 0.5, 0)),
                inner->rest ? lookedUp(b, value, inner->rest) : nullptr};
}

std::optional<Addend> addendOf(ir::Builder& b, ir::Value* value) {
  if (value->dtype() != DType::Float32) return std::nullopt;
  if (value->isInput()) return inputAddend(b, value);
  if (value->isConstant()) return constantAddend(b, value);
  if (ir::Value* from = reshapedFrom(value)) {
    const auto inner = addendOf(b, from);
    if (!inner) return std::nullopt;
    return Addend{reshaped(b, expanded(b, inner->hidden, from->shape()), value->shape()),
                  reshaped(b, expanded(b, inner->rest, from->shape()), value->shape())};
  }
  if (const auto found = lookupAddend(b, value)) return found;
  if (ir::Value* from = expandedFrom(value)) return addendOf(b, from);  // the sum broadcasts implicitly
  if (const auto where = ir::producerAs<aten::WhereSelf>(value)) {
    const bool first = hidesAll(where.self());
    if (!first && !hidesAll(where.other())) return std::nullopt;
    ir::Value* hidden = first ? where.condition() : opposite(b, where.condition());
    ir::Value* rest = first ? where.other() : where.self();
    if (isZero(rest)) return Addend{hidden, nullptr};
    return Addend{hidden, aten::WhereSelf::create(b, hidden, number(b, 0, 0), rest)};
  }
  // (1 - keep) * -10000
  ir::Value* factor = nullptr;
  std::optional<double> times;
  if (const auto scaled = ir::producerAs<aten::MulScalar>(value)) {
    factor = scaled.self();
    times = ir::scalarReal(scaled.other());
  } else if (const auto product = ir::producerAs<aten::MulTensor>(value)) {
    const bool second = product.other()->isConstant();
    const ir::Value* constant = second ? product.other() : product.self();
    factor = second ? product.self() : product.other();
    if (isRealConstant(constant) && constant->numElements() == 1) times = constant->constant().realAt(0);
  }
  if (!times || *times > kHidingFactor || factor->dtype() != DType::Float32) return std::nullopt;
  return Addend{aten::GtTensor::create(b, factor, number(b, 0.5, 0)), nullptr};
}

/// Maximum nesting of masks in a network.
constexpr int kDeepest = 8;

MaskedScores split(ir::Builder& b, ir::Value* input, int depth);

bool isPositiveNumber(const ir::Value* value) {
  if (const auto inverse = ir::producerAs<aten::Reciprocal>(value)) value = inverse.self();
  return isRealConstant(value) && value->numElements() == 1 && value->constant().realAt(0) > 0;
}

/// Masked scores times a positive number, or divided by one.
std::optional<MaskedScores> splitScaled(ir::Builder& b, ir::Value* input, int depth) {
  const auto split = [&](ir::Value* scores, auto scaled) -> std::optional<MaskedScores> {
    if (scores->shape() != input->shape()) return std::nullopt;
    const MaskedScores inner = decompose::split(b, scores, depth + 1);
    if (!inner.hidden) return std::nullopt;
    return MaskedScores{scaled(inner.scores), inner.hidden};
  };
  if (const auto op = ir::producerAs<aten::MulScalar>(input); op && ir::scalarReal(op.other()) > 0)
    return split(op.self(), [&](ir::Value* x) { return aten::MulScalar::create(b, x, op.other()).output(); });
  if (const auto op = ir::producerAs<aten::DivScalar>(input); op && ir::scalarReal(op.other()) > 0)
    return split(op.self(), [&](ir::Value* x) { return aten::DivScalar::create(b, x, op.other()).output(); });
  if (const auto op = ir::producerAs<aten::MulTensor>(input); op && isPositiveNumber(op.other()))
    return split(op.self(), [&](ir::Value* x) { return aten::MulTensor::create(b, x, op.other()).output(); });
  if (const auto op = ir::producerAs<aten::DivTensor>(input); op && isPositiveNumber(op.other()))
    return split(op.self(), [&](ir::Value* x) { return aten::DivTensor::create(b, x, op.other()).output(); });
  return std::nullopt;
}

/// The larger of masked scores and a number that hides: only scores that are hidden change.
std::optional<MaskedScores> splitClamped(ir::Builder& b, ir::Value* input, int depth) {
  ir::Value* scores = nullptr;
  const auto bounded = [&](ir::Value* x, const ir::Value* bound) {
    if (!scores && hidesAll(bound) && x->shape() == input->shape()) scores = x;
  };
  if (const auto larger = ir::producerAs<aten::Maximum>(input)) {
    bounded(larger.self(), larger.other());
    bounded(larger.other(), larger.self());
  } else if (const auto clamp = ir::producerAs<aten::ClampMin>(input)) {
    if (ir::scalarReal(clamp.min()) <= kHides) scores = clamp.self();
  }
  if (!scores) return std::nullopt;
  const MaskedScores inner = split(b, scores, depth + 1);
  return inner.hidden ? std::optional(inner) : std::nullopt;
}

/// Masked scores next to others, such as attention sinks.
std::optional<MaskedScores> splitJoined(ir::Builder& b, ir::Value* input, int depth) {
  const auto cat = ir::producerAs<aten::Cat>(input);
  if (!cat) return std::nullopt;
  std::vector<ir::Value*> scores, hidden;
  bool any = false;
  for (ir::Value* part : cat.tensors()) {
    if (part->rank() != input->rank()) return std::nullopt;
    const MaskedScores inner = split(b, part, depth + 1);
    any |= inner.hidden != nullptr;
    scores.push_back(inner.scores);
    hidden.push_back(inner.hidden ? expanded(b, inner.hidden, part->shape())
                                  : b.constant(Tensor::zeros(DType::Bool, part->shape())));
  }
  if (!any) return std::nullopt;
  return MaskedScores{aten::Cat::create(b, scores, cat.dim()), aten::Cat::create(b, hidden, cat.dim())};
}

MaskedScores split(ir::Builder& b, ir::Value* input, int depth) {
  const MaskedScores none{input, nullptr};
  if (depth > kDeepest || input->dtype() != DType::Float32) return none;
  for (const auto form : {splitScaled, splitClamped, splitJoined}) {
    if (const auto found = form(b, input, depth)) return *found;
  }
  if (const auto where = ir::producerAs<aten::WhereSelf>(input)) {
    const bool first = hidesAll(where.self());
    ir::Value* scores = first ? where.other() : where.self();
    if ((!first && !hidesAll(where.other())) || scores->shape() != input->shape()) return none;
    ir::Value* hidden = first ? where.condition() : opposite(b, where.condition());
    const MaskedScores inner = split(b, scores, depth + 1);
    return {inner.scores, either(b, inner.hidden, hidden)};
  }
  if (const auto sum = ir::producerAs<aten::AddTensor>(input); sum && ir::scalarReal(sum.alpha()) == 1) {
    for (const auto& [scores, mask] :
         {std::pair{sum.self(), sum.other()}, std::pair{sum.other(), sum.self()}}) {
      if (scores->shape() != input->shape() || scores->isConstant()) continue;
      if (scores->isInput() && mask->isInput()) continue;  // unknown which of them is the mask
      const auto addend = addendOf(b, mask);
      if (!addend) continue;
      MaskedScores result = split(b, scores, depth + 1);
      if (addend->rest) result.scores = aten::AddTensor::create(b, result.scores, addend->rest);
      result.hidden = either(b, result.hidden, addend->hidden);
      return result;
    }
    return none;
  }
  if (ir::Value* from = reshapedFrom(input)) {
    const MaskedScores inner = split(b, from, depth + 1);
    if (!inner.hidden) return none;
    return {reshaped(b, inner.scores, input->shape()),
            reshaped(b, expanded(b, inner.hidden, from->shape()), input->shape())};
  }
  return none;
}

}  // namespace

MaskedScores splitMask(ir::Builder& builder, ir::Value* input) {
  return split(builder, input, 0);
}

ir::Value* hide(ir::Builder& builder, ir::Value* scores, ir::Value* hidden) {
  ir::Value* nothing = number(builder, -std::numeric_limits<double>::infinity(), 0);
  return aten::WhereSelf::create(builder, hidden, nothing, scores);
}

}  // namespace carina::decompose
