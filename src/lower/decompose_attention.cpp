// SPDX-License-Identifier: Apache-2.0
// Attention as products, a mask and a softmax.
#include <cmath>

#include "aten/ops.hpp"
#include "lower/decompose_rules.hpp"

namespace carina::lower {
namespace {

// What a masked score becomes: far below any real one, but small enough not to ruin the observed range of the
// scores.
constexpr double kMasked = -255;

/// [L, S] with 0 where column <= row and kMasked elsewhere.
ir::Value* causalMask(ir::Builder& b, int64_t rows, int64_t columns) {
  Tensor mask = Tensor::zeros(DType::Float32, {rows, columns});
  const auto values = mask.mutableAs<float>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i + 1; j < columns; ++j)
      values[static_cast<size_t>(i * columns + j)] = static_cast<float>(kMasked);
  }
  return b.constant(std::move(mask));
}

/// A constant mask as something to add: bool masks keep where true; infinite entries become kMasked. Null
/// when it is no constant.
ir::Value* additiveMask(ir::Builder& b, const ir::Value* mask) {
  if (!mask->isConstant()) return nullptr;
  Tensor result = Tensor::uninitialized(DType::Float32, mask->shape());
  const auto values = result.mutableAs<float>();
  const Tensor& source = mask->constant();
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = source.realAt(static_cast<int64_t>(i));
    if (source.dtype() == DType::Bool)
      values[i] = x != 0 ? 0.0f : static_cast<float>(kMasked);
    else
      values[i] = static_cast<float>(std::max(x, kMasked));
  }
  return b.constant(std::move(result));
}

Result<bool> rewriteAttention(ir::Node* node) {
  const aten::ScaledDotProductAttention op = ir::dynCast<aten::ScaledDotProductAttention>(node);
  if (!op || isQuantizedWhole(*node) || op.dropoutP() != 0 || op.enableGqa()) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* mask = nullptr;
  const int64_t rank = op.query()->rank();
  if (op.isCausal()) {
    mask = causalMask(b, op.query()->dim(rank - 2), op.key()->dim(op.key()->rank() - 2));
  } else if (op.attnMask()) {
    mask = op.attnMask()->dtype() == DType::Float32 && !op.attnMask()->isConstant()
               ? op.attnMask()
               : additiveMask(b, op.attnMask());
    if (!mask) return false;  // a computed bool mask stays with the CPU
  }
  const double scale = op.scale().value_or(1 / std::sqrt(static_cast<double>(op.query()->dim(rank - 1))));
  ir::Value* keys = aten::TransposeInt::create(b, op.key(), int64_t{-2}, int64_t{-1}).output();
  ir::Value* query = aten::MulScalar::create(b, op.query(), scale).output();
  ir::Value* scores = aten::Matmul::create(b, query, keys).output();
  if (mask) scores = aten::AddTensor::create(b, scores, mask, int64_t{1}).output();
  replaceNode(node, aten::Matmul::create(b, softmaxOf(b, scores, -1), op.value()).output());
  return true;
}

}  // namespace

void addAttentionRewrites(std::vector<ir::Rewrite>& rewrites) {
  rewrites.emplace_back(rewriteAttention);
}

}  // namespace carina::lower
