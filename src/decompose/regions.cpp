// SPDX-License-Identifier: Apache-2.0
#include "decompose/regions.hpp"

#include <algorithm>

#include "aten/control_flow.hpp"

namespace carina::decompose {
namespace {

/// Replaces input `i` of the region by `with` and removes it.
void replaceInput(ir::Graph& region, size_t i, ir::Value* with) {
  region.replaceAllUses(region.inputs()[i], with);
  region.removeInput(i);
}

/// The operand group that is passed to regions unchanged, and the region input of its first operand.
struct Taken {
  size_t group = 1, firstInput = 0;
};

Taken takenBy(const ir::Node& node) {
  return node.is(aten::condDef()) ? Taken{1, 0} : Taken{1, node.operandGroup(0).size()};
}

void closeNode(ir::Node& node) {
  const Taken taken = takenBy(node);
  const auto group = node.operandGroup(taken.group);
  std::vector<ir::Value*> operands(group.begin(), group.end());
  for (size_t i = operands.size(); i-- > 0;) {
    ir::Value* const operand = operands[i];
    const auto first = std::find(operands.begin(), operands.end(), operand) - operands.begin();
    const bool again = static_cast<size_t>(first) != i;
    bool used = false;
    for (const auto& region : node.regions())
      used = used || !region->inputs()[taken.firstInput + i]->unused();
    if (used && !again && !operand->isConstant()) continue;
    for (const auto& region : node.regions()) {
      ir::Value* const input = region->inputs()[taken.firstInput + i];
      if (input->unused()) {
        region->removeInput(taken.firstInput + i);
        continue;
      }
      ir::Value* const with = again ? region->inputs()[taken.firstInput + static_cast<size_t>(first)]
                                    : region->addConstant(operand->constant(), operand->name);
      with->quantization = operand->quantization;
      replaceInput(*region, taken.firstInput + i, with);
    }
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
  }
  node.setOperandGroup(taken.group, operands);
}

}  // namespace

Status closeRegions(ir::Graph& graph) {
  CARINA_RETURN_IF_ERROR(aten::forEachGraph(graph, [](ir::Graph& inner) -> Status {
    for (ir::Node* node : inner.nodes()) {
      if (aten::isControlFlow(*node)) closeNode(*node);
    }
    return {};
  }));
  graph.eraseUnusedConstants();
  return {};
}

}  // namespace carina::decompose
