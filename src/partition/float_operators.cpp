// SPDX-License-Identifier: Apache-2.0
// Operators of the network that were decomposed into several and stayed on the CPU.
#include "partition/partition.hpp"

namespace carina::partition {
namespace {

/// The operator of the network that a node originates from; "" if unknown.
std::string sourceOf(const ir::Node* node) {
  return node && node->location() ? node->location()->name : std::string();
}

}  // namespace

void keepFloatInside(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    if (!isDequantize(*node)) continue;
    const ir::Node* quantize = node->operand(0)->producer();
    if (!quantize || !isQuantize(*quantize)) continue;
    ir::Value* exact = quantize->operand(0);
    const std::string source = sourceOf(exact->producer());
    if (source.empty()) continue;
    const std::vector<ir::Use> uses = node->result()->uses();
    for (const ir::Use& use : uses) {
      if (sourceOf(use.node) == source && !isQuantize(*use.node)) use.node->setOperand(use.operand, exact);
    }
  }
  graph.eraseDeadNodes();
}

}  // namespace carina::partition
