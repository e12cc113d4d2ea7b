// SPDX-License-Identifier: Apache-2.0
// Products of matrices: mm, addmm and bmm are the ones with kernels.
#include <algorithm>

#include "aten/ops.hpp"
#include "base/shape.hpp"
#include "decompose/cpu_rewrites.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose::cpu {
namespace {

ir::Value* viewed(ir::Builder& b, ir::Value* x, const Shape& shape) {
  return x->shape() == shape ? x : aten::View::create(b, x, ir::Ints(shape.begin(), shape.end())).output();
}

/// x [..., k] times weight [m, k] transposed, plus bias.
Result<bool> rewriteLinear(ir::Node* node) {
  const auto op = ir::dynCast<aten::Linear>(node);
  if (!op || op.weight()->rank() != 2 || op.input()->rank() == 0) return false;
  const int64_t m = op.weight()->dim(0), k = op.weight()->dim(1);
  if (k == 0) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* rows = viewed(b, op.input(), {op.input()->numElements() / k, k});
  ir::Value* weight = aten::Permute::create(b, op.weight(), ir::Ints{1, 0}).output();
  ir::Value* result = op.bias()
                          ? aten::Addmm::create(b, op.bias(), rows, weight, int64_t{1}, int64_t{1}).output()
                          : aten::Mm::create(b, rows, weight).output();
  CARINA_CHECK(result->dim(1) == m, "linear has as many columns as its weight has rows");
  replaceNode(node, viewed(b, result, node->result()->shape()));
  return true;
}

/// `x` with leading dimensions `batch`, as [B, rows, columns].
ir::Value* batched(ir::Builder& b, ir::Value* x, const Shape& batch, int64_t count) {
  const Shape matrix(x->shape().end() - 2, x->shape().end());
  Shape full = batch;
  full.insert(full.end(), matrix.begin(), matrix.end());
  if (x->shape() != full) x = aten::Expand::create(b, x, ir::Ints(full.begin(), full.end()), false).output();
  return viewed(b, x, {count, matrix[0], matrix[1]});
}

/// matmul of any ranks: vectors become matrices, leading dimensions one batch.
Result<bool> rewriteMatmul(ir::Node* node) {
  const auto op = ir::dynCast<aten::Matmul>(node);
  if (!op || op.self()->rank() == 0 || op.other()->rank() == 0) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* x = op.self();
  ir::Value* y = op.other();
  if (x->rank() == 1) x = viewed(b, x, {1, x->dim(0)});
  if (y->rank() == 1) y = viewed(b, y, {y->dim(0), 1});
  ir::Value* result = nullptr;
  if (x->rank() == 2 && y->rank() == 2) {
    result = aten::Mm::create(b, x, y).output();
  } else if (y->rank() == 2 && y->dim(0) != 0) {
    result = aten::Mm::create(b, viewed(b, x, {x->numElements() / y->dim(0), y->dim(0)}), y).output();
  } else {
    const Shape left(x->shape().begin(), x->shape().end() - 2),
        right(y->shape().begin(), y->shape().end() - 2);
    const std::optional<Shape> batch = broadcastShapes(left, right);
    if (!batch) return false;
    const int64_t count = numElements(*batch);
    result = aten::Bmm::create(b, batched(b, x, *batch, count), batched(b, y, *batch, count)).output();
  }
  replaceNode(node, viewed(b, result, node->result()->shape()));
  return true;
}

}  // namespace

void addMatrixRewrites(std::vector<ir::Rewrite>& rewrites) {
  rewrites.insert(rewrites.end(), {rewriteLinear, rewriteMatmul});
}

}  // namespace carina::decompose::cpu
