// SPDX-License-Identifier: Apache-2.0
#include "compiler/legalize/wide_tables.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tosa/tosa.hpp"

namespace carina::compiler {
namespace {

/// Whether no node outside the part reads an intermediate result of it.
bool isClosed(const PointwisePart& part) {
  const std::unordered_set<const ir::Node*> nodes(part.nodes.begin(), part.nodes.end());
  return std::all_of(part.nodes.begin(), part.nodes.end() - 1, [&](const ir::Node* node) {
    const ir::Value* value = node->result();
    return !value->isGraphOutput() &&
           std::all_of(value->uses().begin(), value->uses().end(),
                       [&](const ir::Use& use) { return nodes.contains(use.node); });
  });
}

/// The TABLE nodes with int8 indices, and the pointwise nodes that depend on one of them.
std::vector<const ir::Node*> behindTables(const ir::Graph& tosa) {
  std::vector<const ir::Node*> found;
  std::unordered_set<const ir::Node*> behind;
  for (const ir::Node* node : tosa.nodes()) {
    const bool begins = ir::isa<tosa::Table>(node) && node->operands()[0]->dtype() == DType::Int8;
    if (!begins &&
        (!node->def().has(ir::kPointwise) ||
         std::none_of(node->operands().begin(), node->operands().end(), [&](const ir::Value* operand) {
           return operand && behind.contains(operand->producer());
         })))
      continue;
    behind.insert(node);
    found.push_back(node);
  }
  return found;
}

}  // namespace

WideTables::WideTables(const ir::Graph& tosa, const WideFunctions& functions, const ByteFunctions& bytes) {
  std::unordered_map<std::string, std::optional<Tensor>> known;
  std::vector<const ir::Node*> nodes = behindTables(tosa);
  std::reverse(nodes.begin(), nodes.end());  // the longest parts first
  for (const ir::Node* node : nodes) {
    // A RESCALE that only widens is folded into its consumer.
    if (node->results().size() != 1 || node->result()->dtype() != DType::Int32 || inside_.contains(node) ||
        functions.isInside(node) || bytes.isInside(node) || ir::isa<tosa::Rescale>(node))
      continue;
    const auto part = pointwisePart(node, DType::Int8);
    if (!part || part->tables < 2 || !isClosed(*part)) continue;
    const auto [table, isNew] = known.try_emplace(textOf(*part));
    if (isNew) table->second = byteTable(*part);
    if (!table->second) continue;
    inside_.insert(part->nodes.begin(), part->nodes.end() - 1);
    matches_.emplace(node,
                     WideTableMatch{part->input, readByNoneBut(part->nodes, part->input), *table->second});
  }
}

}  // namespace carina::compiler
