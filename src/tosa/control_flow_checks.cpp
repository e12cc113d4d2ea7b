// SPDX-License-Identifier: Apache-2.0
// COND_IF and WHILE_LOOP: the inputs and outputs of nested graphs must match the operator's lists exactly.
#include "tosa/infer.hpp"
#include "tosa/node_checker.hpp"
#include "tosa/tosa.hpp"

namespace carina::tosa::check {
namespace {

std::string listText(std::span<ir::Value* const> values) {
  std::string text = "(";
  for (const ir::Value* value : values) text += (text.size() > 1 ? ", " : "") + ir::typeText(value->type);
  return text + ")";
}

Status sameTypes(std::span<ir::Value* const> wanted, std::span<ir::Value* const> got, std::string_view what,
                 std::string_view rule) {
  bool same = wanted.size() == got.size();
  for (size_t i = 0; same && i < wanted.size(); ++i) same = wanted[i]->type == got[i]->type;
  if (same) return {};
  return broken(rule, "{} {}, expected {}", what, listText(got), listText(wanted));
}

Status regionsPresent(const ir::Node& node) {
  for (const auto& region : node.regions()) {
    if (!region) return broken("SubGraphMissing", "{} has no nested graph", node.def().name);
  }
  return {};
}

}  // namespace

Status condIf(const ir::Node& node) {
  const auto op = ir::cast<CondIf>(&node);
  CARINA_RETURN_IF_ERROR(regionsPresent(node));
  if (op.condition()->dtype() != DType::Bool) {
    return broken("CondIfCondNotMatchingBool", "the condition is {}", ir::typeText(op.condition()->type));
  }
  if (checkedNumElements(op.condition()->shape()) != 1) {
    return broken("CondIfCondShapeNotSizeOne", "the condition is {}", ir::typeText(op.condition()->type));
  }
  const ir::Graph &thenGraph = node.region(0), &elseGraph = node.region(1);
  CARINA_RETURN_IF_ERROR(
      sameTypes(op.inputList(), thenGraph.inputs(), "then_graph takes", "CondIfInputListThenGraphMismatch"));
  CARINA_RETURN_IF_ERROR(
      sameTypes(op.inputList(), elseGraph.inputs(), "else_graph takes", "CondIfInputListElseGraphMismatch"));
  CARINA_RETURN_IF_ERROR(sameTypes(node.results(), thenGraph.outputs(), "then_graph returns",
                                   "CondIfOutputListThenGraphMismatch"));
  return sameTypes(node.results(), elseGraph.outputs(), "else_graph returns",
                   "CondIfOutputListElseGraphMismatch");
}

Status whileLoop(const ir::Node& node) {
  const auto op = ir::cast<WhileLoop>(&node);
  CARINA_RETURN_IF_ERROR(regionsPresent(node));
  const auto state = op.inputList();
  CARINA_RETURN_IF_ERROR(sameTypes(state, node.results(), "the results are", "InputListOutputListMismatch"));
  const ir::Graph &condGraph = node.region(0), &bodyGraph = node.region(1);
  CARINA_RETURN_IF_ERROR(
      sameTypes(state, condGraph.inputs(), "cond_graph takes", "InputListCondGraphMismatch"));
  CARINA_RETURN_IF_ERROR(
      sameTypes(state, bodyGraph.inputs(), "body_graph takes", "InputListBodyGraphInputMismatch"));
  CARINA_RETURN_IF_ERROR(
      sameTypes(state, bodyGraph.outputs(), "body_graph returns", "InputListBodyGraphOutputMismatch"));
  if (condGraph.outputs().size() != 1 || condGraph.outputs()[0]->dtype() != DType::Bool) {
    return broken("CondGraphOutputNotMatchingBool", "cond_graph returns {}", listText(condGraph.outputs()));
  }
  if (checkedNumElements(condGraph.outputs()[0]->shape()) != 1) {
    return broken("CondGraphOutputShapeNotSizeOne", "cond_graph returns {}", listText(condGraph.outputs()));
  }
  return {};
}

}  // namespace carina::tosa::check
