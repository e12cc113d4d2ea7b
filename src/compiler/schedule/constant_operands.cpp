// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/constant_operands.hpp"

#include "compiler/schedule/operation_builder.hpp"
#include "compiler/storage/strided_copy.hpp"

namespace carina::compiler {
namespace {

/// Minimum fetches per element, and minimum elements of the result, for a copy to pay off.
constexpr int64_t kFetches = 16, kElements = 1024;

/// Whether the view shows all elements of a constant in order.
bool reshapesConstant(const npu_ir::View& view) {
  const ir::Value *input = view.input(), *output = view->result();
  return input->isConstant() && view.offset() == 0 && input->dtype() == output->dtype() &&
         input->numElements() == output->numElements() && view.strides() == rowMajorStrides(output->shape());
}

/// An operation reads one scalar from its register: if both operands are scalars, one stays in memory.
bool besideScalar(const ir::Value* value, const npu::Target& target) {
  for (const ir::Use& use : value->uses()) {
    if (!ir::isa<npu_ir::Elementwise>(use.node)) continue;
    const ir::Value *first = use.node->operand(0), *second = use.node->operand(1);
    if (first == second || (second && isScalar(first == value ? second : first, target))) return true;
  }
  return false;
}

/// Replaces operand `i` of `node` by a copy in a feature map.
void readCopy(ir::Node* node, size_t i) {
  ir::Value* value = node->operand(i);
  auto builder = ir::Builder::beforeNode(node);
  const ir::Ints strides = rowMajorStrides(value->shape());
  const auto pieces = emitCopies(builder, {value, value->shape(), 0, strides, 0, strides});
  node->setOperand(i, npu_ir::createJoin(builder, pieces, value->type));
}

}  // namespace

void settleConstantOperands(ir::Graph& graph, const npu::Machine& machine) {
  for (ir::Node* node : graph.nodes()) {
    const auto view = ir::dynCast<npu_ir::View>(node);
    if (!view || !reshapesConstant(view) || node->result()->isGraphOutput()) continue;
    if (node->result()->numElements() == 1 && besideScalar(node->result(), *machine.target)) continue;
    auto builder = ir::Builder::beforeNode(node);
    Tensor tensor = view.input()->constant();
    graph.replaceAllUses(node->result(), builder.constant(tensor.reshaped(node->result()->shape())));
  }
  graph.eraseDeadNodes();
  if (machine.target->architecture().broadcastsBothOperands || !machine.memory.slowConstants()) return;
  std::vector<std::pair<ir::Node*, size_t>> slow;
  for (ir::Node* node : graph.nodes()) {
    if (!ir::isa<npu_ir::Elementwise>(node)) continue;
    const int64_t elements = node->result()->numElements();
    for (size_t i = 0; i < 2; ++i) {
      const ir::Value* value = node->operand(i);
      if (!value || !value->isConstant() || elements < kElements) continue;
      if (!isScalar(value, *machine.target) && elements >= kFetches * value->numElements())
        slow.emplace_back(node, i);
    }
  }
  for (const auto& [node, i] : slow) readCopy(node, i);
}

}  // namespace carina::compiler
