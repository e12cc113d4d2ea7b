// SPDX-License-Identifier: Apache-2.0
// Attention as products, a mask and a softmax.
#include <cmath>
#include <limits>

#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"
#include "decompose/softmax_mask.hpp"

namespace carina::decompose {
namespace {

// Of the table of scores of one head: with more, attention stays whole.
constexpr int64_t kMostScores = int64_t{1} << 26;

/// [L, S], true where column > row.
ir::Value* future(ir::Builder& b, int64_t rows, int64_t columns) {
  Tensor mask = Tensor::zeros(DType::Bool, {rows, columns});
  const auto values = mask.mutableAs<uint8_t>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i + 1; j < columns; ++j) values[static_cast<size_t>(i * columns + j)] = 1;
  }
  return b.constant(std::move(mask));
}

ir::Value* masked(ir::Builder& b, ir::Value* scores, ir::Value* mask) {
  if (mask->dtype() == DType::Bool) return hide(b, scores, aten::LogicalNot::create(b, mask).output());
  return aten::AddTensor::create(b, scores, mask, int64_t{1}).output();
}

Result<bool> rewriteAttention(ir::Node* node) {
  const aten::ScaledDotProductAttention op = ir::dynCast<aten::ScaledDotProductAttention>(node);
  if (!op || isQuantizedWhole(*node) || op.dropoutP() != 0) return false;
  if (op.attnMask() && op.attnMask()->dtype() != DType::Bool && op.attnMask()->dtype() != DType::Float32)
    return false;
  const int64_t rank = op.query()->rank();
  if (op.query()->dim(rank - 2) > kMostScores / op.key()->dim(rank - 2)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value *key = op.key(), *value = op.value();
  if (op.enableGqa() && rank > 2) {  // several query heads share a head of keys and values
    const auto repeated = [&](ir::Value* heads) {
      const int64_t times = op.query()->dim(rank - 3) / heads->dim(rank - 3);
      if (times == 1) return heads;
      return aten::RepeatInterleaveSelfInt::create(b, heads, times, rank - 3, std::nullopt).output();
    };
    key = repeated(key);
    value = repeated(value);
  }
  const double scale = op.scale().value_or(1 / std::sqrt(static_cast<double>(op.query()->dim(rank - 1))));
  ir::Value* keys = aten::TransposeInt::create(b, key, int64_t{-2}, int64_t{-1}).output();
  ir::Value* query = aten::MulScalar::create(b, op.query(), scale).output();
  ir::Value* scores = aten::Matmul::create(b, query, keys).output();
  if (op.isCausal()) scores = hide(b, scores, future(b, op.query()->dim(rank - 2), key->dim(rank - 2)));
  if (op.attnMask()) scores = masked(b, scores, op.attnMask());
  replaceNode(node, aten::Matmul::create(b, softmaxOf(b, scores, -1), value).output());
  return true;
}

bool isMinusInfinity(const ir::Value* value) {
  return value->isConstant() && value->numElements() == 1 &&
         value->constant().realAt(0) == -std::numeric_limits<double>::infinity();
}

/// Whether the value is eq(x, -inf).
bool isHiddenScore(const ir::Value* value) {
  if (const auto scalar = ir::producerAs<aten::EqScalar>(value))
    return ir::scalarReal(scalar.other()) == -std::numeric_limits<double>::infinity();
  const auto equal = ir::producerAs<aten::EqTensor>(value);
  return equal && isMinusInfinity(equal.other());
}

/// run_decompositions() puts where(not any(not (scores == -inf)), 0, softmax) round attention: rows in which
/// every score is hidden give 0. softmaxOf() does that already.
Result<bool> rewriteSafeSoftmax(ir::Node* node) {
  const aten::WhereSelf op = ir::dynCast<aten::WhereSelf>(node);
  if (!op || isQuantizedWhole(*node) || op.other()->type != op.output()->type) return false;
  const auto none = ir::producerAs<aten::LogicalNot>(op.condition());
  if (!none) return false;
  const auto any = ir::producerAs<aten::AnyDim>(none.self());
  if (!any) return false;
  const auto seen = ir::producerAs<aten::LogicalNot>(any.self());
  if (!seen || !isHiddenScore(seen.self())) return false;
  replaceNode(node, op.other());
  return true;
}

}  // namespace

void addAttentionRewrites(std::vector<ir::Rewrite>& rewrites) {
  rewrites.emplace_back(rewriteAttention);
  rewrites.emplace_back(rewriteSafeSoftmax);
}

}  // namespace carina::decompose
