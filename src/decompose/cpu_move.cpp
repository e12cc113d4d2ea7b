// SPDX-License-Identifier: Apache-2.0
// Data movement under one of the names that have kernels. Pure movements (permutations, slices, splits, ...)
// need no rewrite: emitCall() knows them as strided readings.
#include "aten/ops.hpp"
#include "decompose/cpu_rewrites.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose::cpu {
namespace {

/// pad with a mode: constant_pad_nd, reflection_padNd, replication_padNd.
Result<bool> rewritePad(ir::Node* node) {
  const auto op = ir::dynCast<aten::Pad>(node);
  if (!op) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  const std::string& mode = op.mode();
  ir::Value* result = nullptr;
  if (mode == "constant") {
    result = aten::ConstantPadNd::create(b, op.self(), op.pad(), op.value().value_or(0.0)).output();
  } else if (mode == "reflect" || mode == "replicate") {
    const bool reflect = mode == "reflect";
    switch (op.pad().size()) {
      case 2:
        result = reflect ? aten::ReflectionPad1d::create(b, op.self(), op.pad()).output()
                         : aten::ReplicationPad1d::create(b, op.self(), op.pad()).output();
        break;
      case 4:
        result = reflect ? aten::ReflectionPad2d::create(b, op.self(), op.pad()).output()
                         : aten::ReplicationPad2d::create(b, op.self(), op.pad()).output();
        break;
      case 6:
        result = reflect ? aten::ReflectionPad3d::create(b, op.self(), op.pad()).output()
                         : aten::ReplicationPad3d::create(b, op.self(), op.pad()).output();
        break;
      default:
        return false;
    }
  } else {
    return false;
  }
  replaceNode(node, result);
  return true;
}

/// tile with fewer factors than dimensions: repeat with ones in front.
Result<bool> rewriteTile(ir::Node* node) {
  const auto op = ir::dynCast<aten::Tile>(node);
  if (!op) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Ints repeats = op.dims();
  const auto rank = static_cast<size_t>(op.self()->rank());
  if (repeats.size() < rank) repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  replaceNode(node, aten::Repeat::create(b, op.self(), repeats).output());
  return true;
}

/// expand with the sizes of the result, none left open.
Result<bool> rewriteExpand(ir::Node* node) {
  const auto op = ir::dynCast<aten::Expand>(node);
  const bool named = ir::isa<aten::ExpandAs>(node) || ir::isa<aten::BroadcastTo>(node);
  const ir::Ints shape(node->results().empty()
                           ? ir::Ints{}
                           : ir::Ints(node->result()->shape().begin(), node->result()->shape().end()));
  if ((!op && !named) || (op && op.size() == shape)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  replaceNode(node, aten::Expand::create(b, node->operands()[0], shape, false).output());
  return true;
}

/// copy(self, src): src in self's shape.
Result<bool> rewriteCopy(ir::Node* node) {
  const auto op = ir::dynCast<aten::Copy>(node);
  if (!op || op.src()->dtype() != node->result()->dtype()) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* source = op.src();
  const Shape& shape = node->result()->shape();
  if (source->shape() != shape)
    source = aten::Expand::create(b, source, ir::Ints(shape.begin(), shape.end()), false).output();
  replaceNode(node, source);
  return true;
}

/// grid_sampler of planes under the name of its kernel.
Result<bool> rewriteGridSampler(ir::Node* node) {
  const auto op = ir::dynCast<aten::GridSampler>(node);
  if (!op || op.input()->rank() != 4) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  replaceNode(node, aten::GridSampler2d::create(b, op.input(), op.grid(), op.interpolationMode(),
                                                op.paddingMode(), op.alignCorners())
                        .output());
  return true;
}

/// A sorted line is its size many largest or smallest elements in order.
struct Sorted {
  ir::Value *values, *indices;
};
Sorted sorted(ir::Node* node, ir::Value* self, int64_t dim, bool descending) {
  ir::Builder b = ir::Builder::beforeNode(node);
  if (dim < 0) dim += self->rank();
  const auto op = aten::Topk::create(b, self, self->dim(dim), dim, descending, true);
  return {op.node()->result(0), op.node()->result(1)};
}

template <typename Op>
Result<bool> rewriteSort(ir::Node* node) {
  const auto op = ir::dynCast<Op>(node);
  if (!op || op.self()->rank() == 0) return false;
  const Sorted result = sorted(node, op.self(), op.dim(), op.descending());
  ir::Graph& graph = node->graph();
  graph.replaceAllUses(node->result(0), result.values);
  graph.replaceAllUses(node->result(1), result.indices);
  graph.erase(node);
  return true;
}

template <typename Op>
Result<bool> rewriteArgsort(ir::Node* node) {
  const auto op = ir::dynCast<Op>(node);
  if (!op || op.self()->rank() == 0) return false;
  replaceNode(node, sorted(node, op.self(), op.dim(), op.descending()).indices);
  return true;
}

}  // namespace

void addMoveRewrites(std::vector<ir::Rewrite>& rewrites) {
  rewrites.insert(rewrites.end(), {rewritePad, rewriteTile, rewriteExpand, rewriteCopy, rewriteGridSampler,
                                   rewriteSort<aten::Sort>, rewriteSort<aten::SortStable>,
                                   rewriteArgsort<aten::Argsort>, rewriteArgsort<aten::ArgsortStable>});
}

}  // namespace carina::decompose::cpu
