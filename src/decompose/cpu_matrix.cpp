// SPDX-License-Identifier: Apache-2.0
// Matrix products: mm, addmm and bmm are those with kernels.
#include <algorithm>

#include "aten/ops.hpp"
#include "base/shape.hpp"
#include "decompose/cpu_rewrites.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose::cpu {
namespace {

/// x [..., k] times weight [m, k] transposed, plus bias.
ir::Value* rewriteLinear(ir::Builder& b, aten::Linear op) {
  if (op.weight()->rank() != 2 || op.input()->rank() == 0) return nullptr;
  const int64_t m = op.weight()->dim(0), k = op.weight()->dim(1);
  if (k == 0) return nullptr;
  ir::Value* rows = viewed(b, op.input(), {op.input()->numElements() / k, k});
  ir::Value* weight = aten::Permute::create(b, op.weight(), ir::Ints{1, 0});
  ir::Value* result =
      op.bias() ? aten::Addmm::create(b, op.bias(), rows, weight) : aten::Mm::create(b, rows, weight);
  CARINA_CHECK(result->dim(1) == m, "linear has as many columns as its weight has rows");
  return viewed(b, result, op->result()->shape());
}

/// `x` with leading dimensions `batch`, as [B, rows, columns].
ir::Value* batched(ir::Builder& b, ir::Value* x, const Shape& batch, int64_t count) {
  const Shape matrix(x->shape().end() - 2, x->shape().end());
  Shape full = batch;
  full.insert(full.end(), matrix.begin(), matrix.end());
  if (x->shape() != full) x = aten::Expand::create(b, x, full);
  return viewed(b, x, {count, matrix[0], matrix[1]});
}

/// matmul of any ranks: vectors become matrices, leading dimensions one batch.
ir::Value* rewriteMatmul(ir::Builder& b, aten::Matmul op) {
  if (op.self()->rank() == 0 || op.other()->rank() == 0) return nullptr;
  ir::Value* x = op.self();
  ir::Value* y = op.other();
  if (x->rank() == 1) x = viewed(b, x, {1, x->dim(0)});
  if (y->rank() == 1) y = viewed(b, y, {y->dim(0), 1});
  ir::Value* result = nullptr;
  if (x->rank() == 2 && y->rank() == 2) {
    result = aten::Mm::create(b, x, y);
  } else if (y->rank() == 2 && y->dim(0) != 0) {
    result = aten::Mm::create(b, viewed(b, x, {x->numElements() / y->dim(0), y->dim(0)}), y);
  } else {
    const Shape left(x->shape().begin(), x->shape().end() - 2),
        right(y->shape().begin(), y->shape().end() - 2);
    const std::optional<Shape> batch = broadcastShapes(left, right);
    if (!batch) return nullptr;
    const int64_t count = numElements(*batch);
    result = aten::Bmm::create(b, batched(b, x, *batch, count), batched(b, y, *batch, count));
  }
  return viewed(b, result, op->result()->shape());
}

}  // namespace

void addMatrixRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteLinear, rewriteMatmul);
}

}  // namespace carina::decompose::cpu
