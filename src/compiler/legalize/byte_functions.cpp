// SPDX-License-Identifier: Apache-2.0
#include "compiler/legalize/byte_functions.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tosa/tosa.hpp"

namespace carina::compiler {
namespace {

constexpr size_t kMaxByteNodes = 64;      // of one part
constexpr int64_t kFewestNumbers = 1024;  // elements for which a new table is worth its 256 bytes

using Roots = std::unordered_map<const ir::Value*, const ir::Value*>;

/// The value that all operands except scalars and tables are functions of; null if there is none.
const ir::Value* commonRoot(const ir::Node& node, const Roots& roots) {
  if (!node.def().has(ir::kPointwise) || node.results().size() != 1) return nullptr;
  const ir::Value* common = nullptr;
  for (size_t i = 0; i < node.operands().size(); ++i) {
    const ir::Value* operand = node.operand(i);
    if (!operand) return nullptr;
    if (operand->isConstant()) {
      if (operand->numElements() != 1 && !(ir::isa<tosa::Table>(&node) && i == 1)) return nullptr;
      continue;
    }
    const auto root = roots.find(operand);
    if (root == roots.end() || (common && common != root->second) ||
        operand->shape() != node.result()->shape())
      return nullptr;
    common = root->second;
  }
  return common;
}

/// For each value, the int8 value that it is a function of; itself if it is a function of no other.
Roots rootsOf(const ir::Graph& tosa) {
  Roots roots;
  for (const ir::Value* input : tosa.inputs()) {
    if (input->dtype() == DType::Int8) roots.emplace(input, input);
  }
  for (const ir::Node* node : tosa.nodes()) {
    const ir::Value* common = commonRoot(*node, roots);
    for (const ir::Value* result : node->results()) {
      if (common || result->dtype() == DType::Int8) roots.emplace(result, common ? common : result);
    }
  }
  return roots;
}

/// The nodes between a root and a result.
class NodesBetween {
 public:
  /// `beyond`: a value that the root is computed from; null if there is none.
  explicit NodesBetween(const ir::Value* root, const ir::Value* beyond = nullptr)
      : root_(root), beyond_(beyond) {}

  /// Operands first; empty if there are too many, or if one of them reads the value beyond the root.
  std::vector<const ir::Node*> find(const ir::Node* last) {
    if (!visit(last)) nodes_.clear();
    return std::move(nodes_);
  }

 private:
  bool visit(const ir::Node* node) {
    if (!seen_.insert(node).second) return true;
    if (seen_.size() > kMaxByteNodes) return false;
    for (const ir::Value* operand : node->operands()) {
      if (operand == root_ || operand->isConstant()) continue;
      if (operand == beyond_ || !visit(operand->producer())) return false;
    }
    nodes_.push_back(node);
    return true;
  }

  const ir::Value *root_, *beyond_;
  std::vector<const ir::Node*> nodes_;
  std::unordered_set<const ir::Node*> seen_;
};

bool combinesValues(const ir::Node& node) {
  return std::count_if(node.operands().begin(), node.operands().end(),
                       [](const ir::Value* operand) { return !operand->isConstant(); }) > 1;
}

/// The nodes of a part, except the last one, whose results nothing else needs.
std::vector<const ir::Node*> onlyFor(const std::vector<const ir::Node*>& part) {
  std::unordered_set<const ir::Node*> needed{part.back()};
  std::vector<const ir::Node*> inside;
  for (size_t i = part.size() - 1; i-- > 0;) {
    const ir::Value* value = part[i]->result();
    const bool only =
        !value->isGraphOutput() && std::all_of(value->uses().begin(), value->uses().end(),
                                               [&](const ir::Use& use) { return needed.contains(use.node); });
    if (!only) continue;
    needed.insert(part[i]);
    inside.push_back(part[i]);
  }
  return inside;
}

/// The part from the last int8 value on that is computed in any case because other nodes need it, too.
PointwisePart fromValueThatIsComputed(PointwisePart part) {
  const std::vector<const ir::Node*> inside = onlyFor(part.nodes);
  for (size_t i = part.nodes.size() - 1; i-- > 0;) {
    const ir::Node* node = part.nodes[i];
    if (node->result()->dtype() != DType::Int8 ||
        std::find(inside.begin(), inside.end(), node) != inside.end())
      continue;
    auto nodes = NodesBetween(node->result(), part.input).find(part.nodes.back());
    if (!nodes.empty()) return {std::move(nodes), node->result()};
  }
  return part;
}

/// Whether a table takes less time than the passes that it replaces, each of which writes int8 codes. A test
/// of a rescaled code does: it reads 32 bits otherwise.
bool isWorthATable(const ir::Node& last, const std::vector<const ir::Node*>& inside) {
  if (last.result()->dtype() == DType::Bool) return !inside.empty();
  const auto any = [&](auto holds) { return std::any_of(inside.begin(), inside.end(), holds); };
  if (!any([](const ir::Node* node) { return node->result()->dtype() == DType::Int8; })) return false;
  const bool tables =
      ir::isa<tosa::Table>(&last) || any([](const ir::Node* n) { return ir::isa<tosa::Table>(n); });
  const bool combines = combinesValues(last) || any([](const ir::Node* n) { return combinesValues(*n); });
  return tables || (combines && last.result()->numElements() >= kFewestNumbers);
}

/// The table of a part, whose truth values are 0 and 1.
std::optional<Tensor> codesOf(const PointwisePart& part) {
  std::optional<Tensor> results = byteTable(part);
  if (!results || results->dtype() == DType::Int8) return results;
  Tensor codes = Tensor::zeros(DType::Int8, results->shape());
  for (int64_t i = 0; i < codes.numElements(); ++i) codes.setIntegerAt(i, results->integerAt(i));
  return codes;
}

}  // namespace

ByteFunctions::ByteFunctions(const ir::Graph& tosa) {
  const Roots roots = rootsOf(tosa);
  std::unordered_map<std::string, std::optional<Tensor>> known;
  std::vector<const ir::Node*> nodes;
  for (const ir::Node* node : tosa.nodes()) nodes.push_back(node);
  std::reverse(nodes.begin(), nodes.end());  // the longest parts first
  for (const ir::Node* node : nodes) {
    if (node->results().size() != 1 || inside_.contains(node)) continue;
    if (node->result()->dtype() != DType::Int8 && node->result()->dtype() != DType::Bool) continue;
    const auto found = roots.find(node->result());
    if (found == roots.end() || found->second == node->result()) continue;
    const ir::Value* root = found->second;
    PointwisePart part{NodesBetween(root).find(node), root};
    if (part.nodes.size() < 2) continue;
    part = fromValueThatIsComputed(std::move(part));
    if (part.nodes.size() < 2) continue;
    std::vector<const ir::Node*> only = onlyFor(part.nodes);
    if (!isWorthATable(*node, only)) continue;
    const auto [table, isNew] = known.try_emplace(textOf(part));
    if (isNew) table->second = codesOf(part);
    if (!table->second) continue;
    inside_.insert(only.begin(), only.end());
    only.push_back(node);
    matches_.emplace(node, ByteFunctionMatch{part.input, readByNoneBut(only, part.input), *table->second});
  }
}

}  // namespace carina::compiler
