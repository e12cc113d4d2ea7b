// SPDX-License-Identifier: Apache-2.0
// Convolutions, pools and resizing: ExecuTorch has kernels for convolution, avg_pool2d,
// max_pool2d_with_indices, _adaptive_avg_pool2d and the 2-D upsample forms.
#include <algorithm>

#include "aten/conv_op.hpp"
#include "aten/geometry.hpp"
#include "aten/ops.hpp"
#include "decompose/cpu_rewrites.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose::cpu {
namespace {

using aten::OpId;

Shape withBatch(const Shape& shape) {
  Shape batched = shape;
  batched.insert(batched.begin(), 1);
  return batched;
}

/// Every convolution as aten.convolution over a batch with symmetric padding; asymmetric padding is applied
/// before it.
ir::Value* rewriteConvolution(ir::Builder& b, ir::Node* node) {
  const auto op = aten::asConvolution(node);
  if (!op) return nullptr;
  const size_t spatial = op->spatialRank();
  const bool batchless = op->input->rank() == static_cast<int64_t>(spatial) + 1;
  const bool symmetric = op->padBefore == op->padAfter;
  if (ir::isa<aten::Convolution>(node) && !batchless && symmetric) return nullptr;
  if (!symmetric && op->transposed) return nullptr;
  ir::Value* input = batchless ? viewed(b, op->input, withBatch(op->input->shape())) : op->input;
  ir::Ints padding = op->padBefore;
  if (!symmetric) {
    ir::Ints pad;  // innermost dimension first
    for (size_t d = spatial; d-- > 0;) pad.insert(pad.end(), {op->padBefore[d], op->padAfter[d]});
    input = aten::ConstantPadNd::create(b, input, pad, 0.0);
    padding.assign(spatial, 0);
  }
  ir::Value* result = aten::Convolution::create(b, input, op->weight, op->bias, op->stride, padding,
                                                op->dilation, op->transposed, op->outputPadding, op->groups);
  return viewed(b, result, node->result()->shape());
}

/// A 3-D convolution as 2-D ones over a batch of planes, one per plane of the kernel, and their sum:
/// ExecuTorch's kernel has no 3-D form. Transposed ones stay as they are.
ir::Value* rewriteConvolution3d(ir::Builder& b, ir::Node* node) {
  const auto op = aten::asConvolution(node);
  if (!op || op->spatialRank() != 3 || op->transposed) return nullptr;
  ir::Value* volume =
      op->input->rank() == 4 ? viewed(b, op->input, withBatch(op->input->shape())) : op->input;
  const bool symmetric = op->padBefore[1] == op->padAfter[1] && op->padBefore[2] == op->padAfter[2];
  ir::Ints pad{0, 0, 0, 0, op->padBefore[0], op->padAfter[0]};  // innermost dimension first
  if (!symmetric)
    pad = {op->padBefore[2], op->padAfter[2], op->padBefore[1], op->padAfter[1], pad[4], pad[5]};
  if (pad != ir::Ints(6, 0)) volume = aten::ConstantPadNd::create(b, volume, pad, 0.0);
  const ir::Ints padding = symmetric ? ir::Ints{op->padBefore[1], op->padBefore[2]} : ir::Ints{0, 0};
  const ir::Ints swap{0, 2, 1, 3, 4};  // moves planes next to the batch, and back
  ir::Value* planes = aten::Permute::create(b, volume, swap);
  const Shape& in = planes->shape();
  const Shape& kernel = op->weight->shape();
  const int64_t depth = node->result()->shape()[node->result()->shape().size() - 3];
  ir::Value* sum = nullptr;
  for (int64_t k = 0; k < kernel[2]; ++k) {
    const int64_t from = k * op->dilation[0], to = from + (depth - 1) * op->stride[0] + 1;
    ir::Value* taken = aten::SliceTensor::create(b, planes, int64_t{1}, from, to, op->stride[0]);
    ir::Value* weight = aten::SliceTensor::create(b, op->weight, int64_t{2}, k, k + 1);
    ir::Value* part = aten::Convolution::create(
        b, viewed(b, taken, {in[0] * depth, in[2], in[3], in[4]}),
        viewed(b, weight, {kernel[0], kernel[1], kernel[3], kernel[4]}), k == 0 ? op->bias : nullptr,
        ir::Ints{op->stride[1], op->stride[2]}, padding, ir::Ints{op->dilation[1], op->dilation[2]}, false,
        ir::Ints{0, 0}, op->groups);
    sum = sum ? aten::AddTensor::create(b, sum, part) : part;
  }
  const Shape& out = sum->shape();
  ir::Value* result = aten::Permute::create(b, viewed(b, sum, {in[0], depth, out[1], out[2], out[3]}), swap);
  return viewed(b, result, node->result()->shape());
}

/// The pool as a 2-D one over a batch: 1-D windows become one row high.
struct Pool2d {
  ir::Value* input;
  ir::Ints kernel, stride, padding, dilation;
  bool ceilMode, countIncludePad;
  std::optional<int64_t> divisor;
};
Result<std::optional<Pool2d>> asPool2d(ir::Builder& b, const ir::Node& node) {
  CARINA_TRY(const aten::PoolGeometry geometry, aten::poolGeometry(node));
  if (geometry.spatial > 2) return std::optional<Pool2d>();
  Pool2d pool{node.operands()[0], geometry.kernel,   geometry.stride,          geometry.padding,
              geometry.dilation,  geometry.ceilMode, geometry.countIncludePad, geometry.divisor};
  Shape shape = pool.input->shape();
  if (shape.size() == geometry.spatial + 1) shape = withBatch(shape);
  if (geometry.spatial == 1) {
    shape.insert(shape.end() - 1, 1);
    pool.kernel.insert(pool.kernel.begin(), 1);
    pool.stride.insert(pool.stride.begin(), 1);
    pool.padding.insert(pool.padding.begin(), 0);
    if (!pool.dilation.empty()) pool.dilation.insert(pool.dilation.begin(), 1);
  }
  if (pool.dilation.empty()) pool.dilation = {1, 1};
  pool.input = viewed(b, pool.input, shape);
  return std::optional(std::move(pool));
}

Result<ir::Value*> rewritePool(ir::Builder& b, ir::Node* node) {
  if (!aten::isOperator(node)) return nullptr;
  const OpId id = aten::opId(node);
  const bool average = id == OpId::AvgPool1d || id == OpId::AvgPool2d;
  const bool indices = id == OpId::MaxPool2dWithIndices;
  if (!average && !indices && id != OpId::MaxPool1d && id != OpId::MaxPool2d) return nullptr;
  if ((id == OpId::AvgPool2d || id == OpId::MaxPool2dWithIndices) && node->operands()[0]->rank() == 4)
    return nullptr;
  CARINA_TRY(const auto pool, asPool2d(b, *node));
  if (!pool) return nullptr;
  if (average) {
    ir::Value* result = aten::AvgPool2d::create(b, pool->input, pool->kernel, pool->stride, pool->padding,
                                                pool->ceilMode, pool->countIncludePad, pool->divisor);
    return viewed(b, result, node->result()->shape());
  }
  const auto result = aten::MaxPool2dWithIndices::create(b, pool->input, pool->kernel, pool->stride,
                                                         pool->padding, pool->dilation, pool->ceilMode);
  if (indices) {
    ir::Graph& graph = node->graph();
    graph.replaceAllUses(node->result(1), viewed(b, result->result(1), node->result(1)->shape()));
  }
  return viewed(b, result->result(0), node->result()->shape());
}

/// adaptive_avg_pool1d, adaptive_avg_pool2d
ir::Value* rewriteAdaptivePool(ir::Builder& b, ir::Node* node) {
  ir::Ints size;
  if (const auto one = ir::dynCast<aten::AdaptiveAvgPool1d>(node))
    size = {1, one.outputSize()[0]};
  else if (const auto two = ir::dynCast<aten::AdaptiveAvgPool2d>(node))
    size = two.outputSize();
  else if (const auto kernel = ir::dynCast<aten::PrivateAdaptiveAvgPool2d>(node);
           kernel && kernel.outputSize().size() == 1)
    size = kernel.outputSize();
  else
    return nullptr;
  if (size.size() == 1) size.push_back(size[0]);
  ir::Value* input = node->operands()[0];
  Shape shape = input->shape();
  if (ir::isa<aten::AdaptiveAvgPool1d>(node)) shape.insert(shape.end() - 1, 1);
  if (shape.size() == 3) shape = withBatch(shape);
  ir::Value* result = aten::PrivateAdaptiveAvgPool2d::create(b, viewed(b, input, shape), size);
  return viewed(b, result, node->result()->shape());
}

/// ExecuTorch has no kernel for exact nearest rows: they are selected individually.
Result<ir::Value*> rewriteNearestExact(ir::Builder& b, aten::PrivateUpsampleNearestExact2dVec op) {
  return pickedNearestRows(b, op.node());
}

}  // namespace

void addWindowRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteConvolution3d, rewriteConvolution, rewritePool, rewriteAdaptivePool,
              rewriteNearestExact);
}

}  // namespace carina::decompose::cpu
