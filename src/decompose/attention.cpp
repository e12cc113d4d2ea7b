// SPDX-License-Identifier: Apache-2.0
// Attention as products, a mask and a softmax.
#include <cmath>
#include <limits>

#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"
#include "decompose/softmax_mask.hpp"

namespace carina::decompose {
namespace {

// Elements of the score matrix of one head; with more, attention is not decomposed.
constexpr int64_t kMaxScores = int64_t{1} << 26;

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
  if (mask->dtype() == DType::Bool) return hide(b, scores, aten::LogicalNot::create(b, mask));
  return aten::AddTensor::create(b, scores, mask);
}

ir::Value* rewriteAttention(ir::Builder& b, aten::ScaledDotProductAttention op) {
  if (isQuantizedAsUnit(op) || op.dropoutP() != 0) return nullptr;
  if (op.attnMask() && op.attnMask()->dtype() != DType::Bool && op.attnMask()->dtype() != DType::Float32)
    return nullptr;
  const int64_t rank = op.query()->rank();
  if (op.query()->dim(rank - 2) > kMaxScores / op.key()->dim(rank - 2)) return nullptr;
  ir::Value *key = op.key(), *value = op.value();
  if (op.enableGqa() && rank > 2) {  // several query heads share a head of keys and values
    const auto repeated = [&](ir::Value* heads) -> ir::Value* {
      const int64_t times = op.query()->dim(rank - 3) / heads->dim(rank - 3);
      if (times == 1) return heads;
      return aten::RepeatInterleaveSelfInt::create(b, heads, times, rank - 3);
    };
    key = repeated(key);
    value = repeated(value);
  }
  const double scale = op.scale().value_or(1 / std::sqrt(static_cast<double>(op.query()->dim(rank - 1))));
  ir::Value* keys = aten::TransposeInt::create(b, key, int64_t{-2}, int64_t{-1});
  ir::Value* query = aten::MulScalar::create(b, op.query(), scale);
  ir::Value* scores = aten::Matmul::create(b, query, keys);
  if (op.isCausal()) scores = hide(b, scores, future(b, op.query()->dim(rank - 2), key->dim(rank - 2)));
  if (op.attnMask()) scores = masked(b, scores, op.attnMask());
  return aten::Matmul::create(b, softmaxOf(b, scores, -1), value);
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

/// run_decompositions() wraps attention in where(not any(not (scores == -inf)), 0, softmax): rows in which
/// every score is hidden become 0. softmaxOf() already ensures that.
ir::Value* rewriteSafeSoftmax(ir::Builder&, aten::WhereSelf op) {
  if (isQuantizedAsUnit(op) || op.other()->type != op.output()->type) return nullptr;
  const auto none = ir::producerAs<aten::LogicalNot>(op.condition());
  if (!none) return nullptr;
  const auto any = ir::producerAs<aten::AnyDim>(none.self());
  if (!any) return nullptr;
  const auto seen = ir::producerAs<aten::LogicalNot>(any.self());
  if (!seen || !isHiddenScore(seen.self())) return nullptr;
  return op.other();
}

}  // namespace

void addAttentionRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteAttention, rewriteSafeSoftmax);
}

}  // namespace carina::decompose
