// SPDX-License-Identifier: Apache-2.0
#include "ir/footprint.hpp"

namespace carina::ir {
namespace {}  // namespace

Footprint footprintOf(const Graph& graph) {
  std::unordered_map<const Value*, size_t> usesLeft;
  Footprint most;
  int64_t alive = 0;
  for (const Value* input : graph.inputs()) alive += input->numBytes();
  most.bytes = alive;
  for (const Node* node : graph.nodes()) {
    for (const Value* result : node->results()) {
      alive += result->numBytes();
      usesLeft[result] = result->uses().size();
    }
    if (alive > most.bytes) most = {alive, node};
    for (const Value* operand : node->operands()) {
      const auto left = operand ? usesLeft.find(operand) : usesLeft.end();
      if (left != usesLeft.end() && --left->second == 0 && !operand->isGraphOutput())
        alive -= operand->numBytes();
    }
    for (const Value* result : node->results()) {
      if (result->unused()) alive -= result->numBytes();
    }
  }
  return most;
}

}  // namespace carina::ir
