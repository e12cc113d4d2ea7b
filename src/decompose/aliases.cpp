// SPDX-License-Identifier: Apache-2.0
#include "decompose/aliases.hpp"

#include <unordered_map>
#include <utility>

#include "aten/ops.hpp"

namespace carina::decompose {

using namespace aten;
namespace {

constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
#include "aten/operator_aliases.inc"
};

/// The operator that a node's name is an alias of, or null. The table's generator has compared their
/// arguments.
const ir::OpDef* namedOperator(const ir::Node& node) {
  static const std::unordered_map<std::string_view, const ir::OpDef*> index = [] {
    std::unordered_map<std::string_view, const ir::OpDef*> map;
    for (const auto& [alias, name] : kAliases) map.emplace(alias, findOperator(name));
    return map;
  }();
  const auto found = index.find(node.opName());
  return found == index.end() ? nullptr : found->second;
}

/// Whether the alias of a view returns separate memory.
bool isCopy(const ir::OpDef& alias, const ir::OpDef& named) {
  return named.has(ir::kView) && !alias.has(ir::kView);
}

}  // namespace

Status replaceAliases(ir::Graph& graph, Copies copies) {
  for (ir::Node* node : graph.nodes()) {
    for (const auto& region : node->regions()) {
      if (region) CARINA_RETURN_IF_ERROR(replaceAliases(*region, copies));
    }
    const ir::OpDef* def = namedOperator(*node);
    if (!def || (copies == Copies::Keep && isCopy(node->def(), *def))) continue;
    ir::NodeSpec spec;
    spec.def = def;
    spec.location = node->location();
    for (size_t i = 0; i < def->operands.size(); ++i) {
      const auto group = node->operandGroup(i);
      spec.operands.emplace_back(group.begin(), group.end());
    }
    for (size_t i = 0; i < def->attributes.size(); ++i) spec.attributes.push_back(node->attribute(i));
    if (!def->infer) {
      for (const ir::Value* result : node->results()) spec.types.push_back(result->type);
    }
    auto created = graph.create(std::move(spec), node);
    if (!created) return std::move(created).error().at(node->where());
    for (size_t i = 0; i < node->results().size(); ++i) {
      std::swap((*created)->result(i)->name, node->result(i)->name);
      graph.replaceAllUses(node->result(i), (*created)->result(i));
    }
    graph.erase(node);
  }
  return {};
}

}  // namespace carina::decompose
