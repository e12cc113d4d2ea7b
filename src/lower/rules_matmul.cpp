// SPDX-License-Identifier: Apache-2.0
// Products of two computed matrices: MATMUL over [batch, rows, inner] x [batch, inner, columns].
#include "aten/ops.hpp"
#include "lower/matrices.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

/// A vector gets a dimension of size 1, in front if `vectorFirst`, otherwise at the end.
Shape matrixShape(Shape shape, bool vectorFirst) {
  if (shape.size() == 1) shape.insert(vectorFirst ? shape.begin() : shape.end(), 1);
  return shape;
}

int64_t batchOf(const Shape& shape) {
  int64_t batch = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) batch *= shape[i];
  return batch;
}

/// [batch, rows, columns] with the batch repeated to `full` if it must be broadcast.
Result<ir::Value*> batched(Lowering& lowering, const StoredTensor& data, const Shape& matrix,
                           const Shape& fullBatch) {
  Emitter& emit = lowering.emit();
  const int64_t rows = matrix[matrix.size() - 2], columns = matrix.back();
  ir::Value* value = lowering.rowMajor(lowering.viewed(data, matrix));
  const int64_t full = numElements(fullBatch);
  if (batchOf(matrix) == full) return emit.reshape(value, {full, rows, columns});
  Shape shape(fullBatch.size() + 2 - matrix.size(), 1);
  shape.insert(shape.end(), matrix.begin(), matrix.end());
  Shape multiples(shape.size(), 1);
  for (size_t i = 0; i < fullBatch.size(); ++i) multiples[i] = fullBatch[i] / shape[i];
  return emit.reshape(emit.tile(emit.reshape(value, shape), multiples), {full, rows, columns});
}

}  // namespace

Result<Matrices> matricesOf(Lowering& lowering, const StoredTensor& a, const StoredTensor& b) {
  const Shape left = matrixShape(a.shape(), true), right = matrixShape(b.shape(), false);
  const auto batch =
      broadcastShapes(Shape(left.begin(), left.end() - 2), Shape(right.begin(), right.end() - 2));
  if (!batch)
    return fail(Code::InvalidOperator, "matrices of shapes {} and {} do not fit", shapeText(left),
                shapeText(right));
  // A single right matrix: the left batch becomes rows.
  const bool rowsOnly = batchOf(right) == 1;
  const Shape leftMatrix = rowsOnly ? Shape{numElements(left) / left.back(), left.back()} : left;
  const Shape rightMatrix = rowsOnly ? Shape{right[right.size() - 2], right.back()} : right;
  const Shape fullBatch = rowsOnly ? Shape{} : *batch;
  Matrices matrices;
  CARINA_TRY(matrices.left, batched(lowering, a, leftMatrix, fullBatch));
  CARINA_TRY(matrices.right, batched(lowering, b, rightMatrix, fullBatch));
  return matrices;
}

namespace {

Status lowerMatmul(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const QuantizedValue a, lowering.plainValue(node.operands()[0]));
  CARINA_TRY(const QuantizedValue b, lowering.plainValue(node.operands()[1]));
  if (a.data.dtype() != b.data.dtype()) {
    return fail(Code::NoIntegerForm, "products of {} and {} matrices are not supported on the NPU",
                dtypeName(a.data.dtype()), dtypeName(b.data.dtype()))
        .withRemedy("quantize both to the same type");
  }
  CARINA_TRY(const Matrices matrices, matricesOf(lowering, a.data, b.data));
  ir::Value* product = lowering.emit().matmul(matrices.left, matrices.right, a.zeroPoint, b.zeroPoint);
  defineAccumulator(lowering, node.result(), {product, Layout::rowMajor(node.result()->shape())},
                    a.scale() * b.scale());
  return {};
}

}  // namespace

void addMatmulRules(Rules& rules) {
  rules[&aten::Mm::def()] = rules[&aten::Bmm::def()] = rules[&aten::Matmul::def()] = lowerMatmul;
}

}  // namespace carina::lower
