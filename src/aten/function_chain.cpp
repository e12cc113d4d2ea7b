// SPDX-License-Identifier: Apache-2.0
#include "aten/function_chain.hpp"

#include <algorithm>

#include "aten/operator_facts.hpp"

namespace carina::aten {

bool mapsOneTensor(const ir::Node& node) {
  if (factsOf(node).tosa != TosaForm::Elementwise) return false;
  const auto& operands = node.operands();
  return !operands.empty() && operands[0] && isFloat(operands[0]->dtype()) &&
         isFloat(node.result()->dtype()) &&
         std::all_of(operands.begin() + 1, operands.end(), [](const ir::Value* operand) { return !operand; });
}

Result<ir::Graph> graphOfChain(std::span<const ir::Node* const> chain, const ir::Type& input) {
  ir::Graph graph("chain");
  ir::Value* value = graph.addInput(input, "x");
  for (const ir::Node* node : chain) {
    ir::NodeSpec spec;
    spec.def = &node->def();
    for (size_t i = 0; i < node->def().operands.size(); ++i) {
      auto& group = spec.operands.emplace_back();
      for (const ir::Value* operand : node->operandGroup(i)) group.push_back(operand ? value : nullptr);
    }
    for (size_t i = 0; i < node->def().attributes.size(); ++i) spec.attributes.push_back(node->attribute(i));
    CARINA_TRY(const ir::Node* const copy, graph.create(std::move(spec)));
    value = copy->result();
  }
  graph.setOutputs({value});
  return graph;
}

}  // namespace carina::aten
