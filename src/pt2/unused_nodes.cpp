// SPDX-License-Identifier: Apache-2.0
#include "pt2/unused_nodes.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "pt2/numbers.hpp"
#include "pt2/refusals.hpp"

namespace carina::pt2 {
namespace {

/// Removes unused nodes in the regions of a node.
void cleanRegions(NodeDocument& node) {
  for (NamedArgument& input : node.inputs) {
    if (!input.value.graph) continue;
    auto cleaned = std::make_shared<GraphDocument>(*input.value.graph);
    eraseUnusedNodes(*cleaned);
    input.value.graph = std::move(cleaned);
  }
}

/// "aten.add_.Tensor" and "aten.add.out" write to their operands.
bool writesNothing(std::string_view target) {
  if (givesNumber(target)) return true;
  constexpr std::string_view kAten = "aten.";
  std::string_view name = operatorName(target);
  if (name.substr(0, kAten.size()) != kAten) return false;
  name.remove_prefix(kAten.size());
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  return name[dot - 1] != '_' && name.find("out", dot) == std::string_view::npos;
}

}  // namespace

void eraseUnusedNodes(GraphDocument& graph) {
  std::unordered_set<std::string> used;
  const auto use = [&](const Argument& argument) {
    used.insert(argument.names.begin(), argument.names.end());
  };
  for (const Argument& output : graph.outputs) use(output);
  std::vector<NodeDocument> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool read = std::any_of(node->outputs.begin(), node->outputs.end(), [&](const Argument& output) {
      return std::any_of(output.names.begin(), output.names.end(),
                         [&](const std::string& name) { return used.count(name) != 0; });
    });
    if (isAssertion(node->target)) continue;
    // A node without any outputs exists for its side effects.
    if (!read && !node->outputs.empty() && writesNothing(node->target)) continue;
    for (const NamedArgument& input : node->inputs) use(input.value);
    cleanRegions(*node);
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
}

}  // namespace carina::pt2
