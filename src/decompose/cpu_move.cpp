// SPDX-License-Identifier: Apache-2.0
// Data movement under one of the names that have kernels. Pure movements (permutations, slices, splits, ...)
// need no rewrite: emitCall() handles them as strided reads.
#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "decompose/cpu_rewrites.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose::cpu {
namespace {

/// pad with a mode: constant_pad_nd, reflection_padNd, replication_padNd.
ir::Value* rewritePad(ir::Builder& b, aten::Pad op) {
  const std::string& mode = op.mode();
  ir::Value* result = nullptr;
  if (mode == "constant") {
    result = aten::ConstantPadNd::create(b, op.self(), op.pad(), op.value().value_or(0.0));
  } else if (mode == "reflect" || mode == "replicate") {
    const bool reflect = mode == "reflect";
    switch (op.pad().size()) {
      case 2:
        result = reflect ? aten::ReflectionPad1d::create(b, op.self(), op.pad())
                         : aten::ReplicationPad1d::create(b, op.self(), op.pad());
        break;
      case 4:
        result = reflect ? aten::ReflectionPad2d::create(b, op.self(), op.pad())
                         : aten::ReplicationPad2d::create(b, op.self(), op.pad());
        break;
      case 6:
        result = reflect ? aten::ReflectionPad3d::create(b, op.self(), op.pad())
                         : aten::ReplicationPad3d::create(b, op.self(), op.pad());
        break;
      default:
        return nullptr;
    }
  } else {
    return nullptr;
  }
  return result;
}

/// tile with fewer factors than dimensions: repeat with ones in front.
ir::Value* rewriteTile(ir::Builder& b, aten::Tile op) {
  ir::Ints repeats = op.dims();
  const auto rank = static_cast<size_t>(op.self()->rank());
  if (repeats.size() < rank) repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  return aten::Repeat::create(b, op.self(), repeats);
}

/// expand with the explicit sizes of the result.
ir::Value* rewriteExpand(ir::Builder& b, ir::Node* node) {
  const auto op = ir::dynCast<aten::Expand>(node);
  const bool named = ir::isa<aten::ExpandAs>(node) || ir::isa<aten::BroadcastTo>(node);
  const ir::Ints shape(node->results().empty()
                           ? ir::Ints{}
                           : ir::Ints(node->result()->shape().begin(), node->result()->shape().end()));
  if ((!op && !named) || (op && op.size() == shape)) return nullptr;
  return aten::Expand::create(b, node->operands()[0], shape);
}

/// copy(self, src): src in self's shape.
ir::Value* rewriteCopy(ir::Builder& b, aten::Copy op) {
  if (op.src()->dtype() != op->result()->dtype()) return nullptr;
  ir::Value* source = op.src();
  const Shape& shape = op->result()->shape();
  if (source->shape() != shape) source = aten::Expand::create(b, source, shape);
  return source;
}

/// grid_sampler of planes under the name of its kernel.
ir::Value* rewriteGridSampler(ir::Builder& b, aten::GridSampler op) {
  if (op.input()->rank() != 4) return nullptr;
  return aten::GridSampler2d::create(b, op.input(), op.grid(), op.interpolationMode(), op.paddingMode(),
                                     op.alignCorners());
}

/// Sorting a line is top-k with k equal to its size.
struct Sorted {
  ir::Value *values, *indices;
};
Sorted sorted(const ir::Builder& b, ir::Value* self, int64_t dim, bool descending) {
  dim = wrapped(dim, self->rank());
  const auto op = aten::Topk::create(b, self, self->dim(dim), dim, descending);
  return {op.node()->result(0), op.node()->result(1)};
}

template <typename Op>
Result<bool> rewriteSort(ir::Node* node) {
  const auto op = ir::dynCast<Op>(node);
  if (!op || op.self()->rank() == 0) return false;
  const Sorted result = sorted(ir::Builder::beforeNode(node), op.self(), op.dim(), op.descending());
  ir::Graph& graph = node->graph();
  graph.replaceAllUses(node->result(0), result.values);
  graph.replaceAllUses(node->result(1), result.indices);
  graph.erase(node);
  return true;
}

template <typename Op>
ir::Value* rewriteArgsort(ir::Builder& b, Op op) {
  return op.self()->rank() == 0 ? nullptr : sorted(b, op.self(), op.dim(), op.descending()).indices;
}

/// Rows of a constant table that are quantized: rows of the quantized table, which is smaller.
ir::Value* rewriteQuantizedRows(ir::Builder& b, aten::QuantizePerTensor op) {
  const auto rows = ir::dynCast<aten::Embedding>(op.input()->producer());
  if (!rows || !rows.weight()->isConstant() || op.input()->uses().size() != 1 || op.input()->isGraphOutput())
    return nullptr;
  ir::Graph table("table");
  ir::Builder inside(table);
  table.setOutputs(
      {aten::QuantizePerTensor::create(inside, table.addConstant(rows.weight()->constant()), op.scale(),
                                       op.zeroPoint(), op.quantMin(), op.quantMax(), op.dtype())});
  auto codes = aten::execute(table, {});
  if (!codes.ok()) return nullptr;
  return aten::Embedding::create(b, b.constant(std::move(codes->front())), rows.indices(), rows.paddingIdx(),
                                 rows.scaleGradByFreq(), rows.sparse());
}

}  // namespace

void addMoveRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteQuantizedRows, rewritePad, rewriteTile, rewriteExpand, rewriteCopy,
              rewriteGridSampler, rewriteSort<aten::Sort>, rewriteSort<aten::SortStable>,
              rewriteArgsort<aten::Argsort>, rewriteArgsort<aten::ArgsortStable>);
}

}  // namespace carina::decompose::cpu
