// SPDX-License-Identifier: Apache-2.0
// Products with a constant matrix become linear, whose weight is quantized per output channel and encoded for
// the NPU.
#include "aten/ops.hpp"
#include "lower/decompose_rules.hpp"

namespace carina::lower {
namespace {

bool isMatrix(const ir::Value* value) {
  return value->isConstant() && value->rank() == 2 && value->dtype() == DType::Float32;
}

ir::Value* transposedMatrix(ir::Builder& b, ir::Value* matrix) {
  return aten::Permute::create(b, matrix, ir::Ints{1, 0}).output();
}

/// x [n, k] (any leading dimensions) times constant [k, m].
template <typename Op>
Result<bool> rewriteProduct(ir::Node* node) {
  const Op op = ir::dynCast<Op>(node);
  if (!op || !isMatrix(node->operands()[1]) || node->operands()[0]->isConstant() ||
      node->operands()[0]->rank() < 2)
    return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* weight = transposedMatrix(b, node->operands()[1]);
  replaceNode(node, aten::Linear::create(b, node->operands()[0], weight, nullptr).output());
  return true;
}

/// beta * bias + alpha * (x weight^T)
Result<bool> rewriteAddmm(ir::Node* node) {
  const aten::Addmm op = ir::dynCast<aten::Addmm>(node);
  if (!op) return false;
  const double beta = ir::scalarReal(op.beta()), alpha = ir::scalarReal(op.alpha());
  ir::Builder b = ir::Builder::beforeNode(node);
  const bool plain = beta == 1 && alpha == 1;
  const bool isBias = op.self()->isConstant() && op.self()->numElements() == op.mat2()->dim(1) &&
                      op.self()->dtype() == DType::Float32;
  if (plain && isBias && isMatrix(op.mat2()) && !op.mat1()->isConstant()) {
    ir::Value* bias = aten::View::create(b, op.self(), ir::Ints{op.mat2()->dim(1)}).output();
    replaceNode(node, aten::Linear::create(b, op.mat1(), transposedMatrix(b, op.mat2()), bias).output());
    return true;
  }
  if (isQuantizedWhole(*node)) return false;
  ir::Value* product = aten::Mm::create(b, op.mat1(), op.mat2()).output();
  if (alpha != 1) product = aten::MulScalar::create(b, product, alpha).output();
  if (beta == 0) {
    replaceNode(node, product);
    return true;
  }
  ir::Value* self = beta == 1 ? op.self() : aten::MulScalar::create(b, op.self(), beta).output();
  replaceNode(node, aten::AddTensor::create(b, product, self, int64_t{1}).output());
  return true;
}

Result<bool> rewriteBaddbmm(ir::Node* node) {
  const aten::Baddbmm op = ir::dynCast<aten::Baddbmm>(node);
  if (!op || isQuantizedWhole(*node)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  const double beta = ir::scalarReal(op.beta()), alpha = ir::scalarReal(op.alpha());
  ir::Value* product = aten::Bmm::create(b, op.batch1(), op.batch2()).output();
  if (alpha != 1) product = aten::MulScalar::create(b, product, alpha).output();
  if (beta == 0) {
    replaceNode(node, product);
    return true;
  }
  ir::Value* self = beta == 1 ? op.self() : aten::MulScalar::create(b, op.self(), beta).output();
  replaceNode(node, aten::AddTensor::create(b, product, self, int64_t{1}).output());
  return true;
}

}  // namespace

void addMatrixRewrites(std::vector<ir::Rewrite>& rewrites) {
  rewrites.insert(rewrites.end(),
                  {rewriteProduct<aten::Mm>, rewriteProduct<aten::Matmul>, rewriteAddmm, rewriteBaddbmm});
}

}  // namespace carina::lower
