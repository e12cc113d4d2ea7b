// SPDX-License-Identifier: Apache-2.0
#include "aten/control_flow.hpp"

#include <limits>

namespace carina::aten {
namespace {

std::string listText(std::span<ir::Value* const> values) {
  std::string text = "(";
  for (const ir::Value* value : values) text += (text.size() > 1 ? ", " : "") + ir::typeText(value->type);
  return text + ")";
}

Status sameTypes(std::span<ir::Value* const> wanted, std::span<ir::Value* const> found,
                 std::string_view role) {
  bool same = wanted.size() == found.size();
  for (size_t i = 0; same && i < wanted.size(); ++i) same = wanted[i]->type == found[i]->type;
  if (same) return {};
  return fail(Code::InvalidOperator, "{}: {} where the operator has {}", role, listText(found),
              listText(wanted));
}

bool isTruth(const ir::Value& value) {
  return value.dtype() == DType::Bool && checkedNumElements(value.shape()) == 1;
}

Status checkRegions(const ir::Node& node, std::span<ir::Value* const> taken) {
  for (size_t i = 0; i < node.regions().size(); ++i) {
    if (!node.regions()[i])
      return fail(Code::InvalidOperator, "{} lacks its {}", node.opName(), regionRole(node, i));
    CARINA_RETURN_IF_ERROR(
        sameTypes(taken, node.region(i).inputs(), fmt::format("the {} takes", regionRole(node, i))));
  }
  return {};
}

Status checkCond(const ir::Node& node) {
  if (!isTruth(*node.operand(0)))
    return fail(Code::InvalidOperator, "the predicate is {}, one bool is needed",
                ir::typeText(node.operand(0)->type));
  CARINA_RETURN_IF_ERROR(checkRegions(node, node.operandGroup(1)));
  for (size_t i = 0; i < 2; ++i) {
    CARINA_RETURN_IF_ERROR(sameTypes(node.results(), node.region(i).outputs(),
                                     fmt::format("the {} gives", regionRole(node, i))));
  }
  return {};
}

Status checkWhileLoop(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(sameTypes(node.operandGroup(0), node.results(), "the results are"));
  CARINA_RETURN_IF_ERROR(checkRegions(node, node.operands()));
  const auto& condition = node.region(0).outputs();
  if (condition.size() != 1 || !isTruth(*condition[0]))
    return fail(Code::InvalidOperator, "the {} gives {}, one bool is needed", regionRole(node, 0),
                listText(condition));
  return sameTypes(node.operandGroup(0), node.region(1).outputs(),
                   fmt::format("the {} gives", regionRole(node, 1)));
}

// No operator of the aten table has this number.
constexpr uint16_t kNoId = std::numeric_limits<uint16_t>::max();

}  // namespace

const ir::OpDef& condDef() {
  static constexpr ir::OperandDef kOperands[] = {{"pred", ir::Arity::One, false},
                                                 {"operands", ir::Arity::Variadic, false}};
  static constexpr ir::ResultDef kResults[] = {{"results", ir::Arity::Variadic}};
  static constexpr ir::OpDef kDef{
      "higher_order.cond", kNoId, 2, ir::kPure, kOperands, kResults, {}, nullptr, checkCond};
  return kDef;
}

const ir::OpDef& whileLoopDef() {
  static constexpr ir::OperandDef kOperands[] = {{"carried", ir::Arity::Variadic, false},
                                                 {"additional", ir::Arity::Variadic, false}};
  static constexpr ir::ResultDef kResults[] = {{"results", ir::Arity::Variadic}};
  static constexpr ir::OpDef kDef{
      "higher_order.while_loop", kNoId, 2, ir::kPure, kOperands, kResults, {}, nullptr, checkWhileLoop};
  return kDef;
}

bool isControlFlow(const ir::Node& node) {
  return node.is(condDef()) || node.is(whileLoopDef());
}

const ir::OpDef* findControlFlow(std::string_view name) {
  for (const ir::OpDef* def : {&condDef(), &whileLoopDef()}) {
    if (def->name == name) return def;
  }
  return nullptr;
}

std::string_view regionRole(const ir::Node& node, size_t region) {
  if (node.is(condDef())) return region == 0 ? "true branch" : "false branch";
  return region == 0 ? "loop condition" : "loop body";
}

Status forEachGraph(ir::Graph& graph, const std::function<Status(ir::Graph&)>& visit) {
  CARINA_RETURN_IF_ERROR(visit(graph));
  for (ir::Node* node : graph.nodes()) {
    if (!isControlFlow(*node)) continue;
    for (const auto& region : node->regions()) {
      Status status = region ? forEachGraph(*region, visit) : Status();
      if (!status.ok()) return std::move(status).error().at(node->where());
    }
  }
  return {};
}

void forEachNode(const ir::Graph& graph, const std::function<void(const ir::Node&)>& visit) {
  for (const ir::Node* node : graph.nodes()) {
    visit(*node);
    if (!isControlFlow(*node)) continue;
    for (const auto& region : node->regions()) {
      if (region) forEachNode(*region, visit);
    }
  }
}

}  // namespace carina::aten
