// SPDX-License-Identifier: Apache-2.0
#include "ir/footprint.hpp"

namespace carina::ir {
namespace {

int64_t bytesOf(const Value& value) {
  return value.numElements() * dtypeSize(value.dtype());
}

}  // namespace

Footprint footprintOf(const Graph& graph) {
  std::unordered_map<const Value*, size_t> usesLeft;
  Footprint most;
  int64_t alive = 0;
  for (const Value* input : graph.inputs()) alive += bytesOf(*input);
  most.bytes = alive;
  for (const Node* node : graph.nodes()) {
    for (const Value* result : node->results()) {
      alive += bytesOf(*result);
      usesLeft[result] = result->uses().size();
    }
    if (alive > most.bytes) most = {alive, node};
    for (const Value* operand : node->operands()) {
      const auto left = operand ? usesLeft.find(operand) : usesLeft.end();
      if (left != usesLeft.end() && --left->second == 0 && !operand->isGraphOutput())
        alive -= bytesOf(*operand);
    }
    for (const Value* result : node->results()) {
      if (result->unused()) alive -= bytesOf(*result);
    }
  }
  return most;
}

}  // namespace carina::ir
