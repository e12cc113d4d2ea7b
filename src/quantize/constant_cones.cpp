// SPDX-License-Identifier: Apache-2.0
#include "quantize/constant_cones.hpp"

#include <algorithm>

#include "aten/executor.hpp"

namespace carina::quantize {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 24;  // limit for values that operators expand

}  // namespace

ConstantCones::ConstantCones(const ir::Graph& graph) {
  for (const ir::Node* node : graph.nodes()) {
    order_.emplace(node, order_.size());
    if (!node->def().has(ir::kPure) || !node->regions().empty() || !aten::canExecute(node->def())) continue;
    const auto& operands = node->operands();
    if (!std::all_of(operands.begin(), operands.end(),
                     [&](const ir::Value* operand) { return !operand || isKnown(operand); }) ||
        std::any_of(node->results().begin(), node->results().end(),
                    [](const ir::Value* result) { return result->numElements() > kMaxElements; }))
      continue;
    known_.insert(node->results().begin(), node->results().end());
  }
}

std::vector<const ir::Node*> ConstantCones::nodesOf(const ir::Value* value) const {
  std::unordered_set<const ir::Node*> found;
  std::vector<const ir::Value*> open{value};
  while (!open.empty()) {
    const ir::Node* node = open.back()->producer();
    open.pop_back();
    if (!node || !found.insert(node).second) continue;
    for (const ir::Value* operand : node->operands()) {
      if (operand) open.push_back(operand);
    }
  }
  std::vector<const ir::Node*> nodes(found.begin(), found.end());
  std::sort(nodes.begin(), nodes.end(),
            [&](const ir::Node* a, const ir::Node* b) { return order_.at(a) < order_.at(b); });
  return nodes;
}

Result<Tensor> ConstantCones::contentsOf(const ir::Value* value, const Replacement& replacement) const {
  if (value->isConstant()) return value->constant();
  ir::Graph alone("constant");
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  for (const ir::Node* node : nodesOf(value)) {
    if (auto contents = replacement ? replacement(*node) : std::nullopt) {
      mapping[node->result()] = alone.addConstant(std::move(*contents));
      continue;
    }
    for (const ir::Value* operand : node->operands()) {
      if (operand && operand->isConstant() && mapping.count(operand) == 0)
        mapping[operand] = alone.addConstant(operand->constant());
    }
    CARINA_TRY([[maybe_unused]] ir::Node* const copy, ir::cloneNode(*node, alone, mapping));
  }
  alone.setOutputs({mapping.at(value)});
  CARINA_TRY(std::vector<Tensor> contents, aten::execute(alone, {}));
  return std::move(contents[0]);
}

}  // namespace carina::quantize
