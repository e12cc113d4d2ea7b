// SPDX-License-Identifier: Apache-2.0
#include "ir/regions.hpp"

namespace carina::ir {
namespace {

void collect(const Graph& graph, std::vector<const Graph*>& all) {
  all.push_back(&graph);
  for (const Node* node : graph.nodes()) {
    for (const auto& region : node->regions()) collect(*region, all);
  }
}

}  // namespace

std::vector<const Graph*> graphsWithin(const Graph& graph) {
  std::vector<const Graph*> all;
  collect(graph, all);
  return all;
}

}  // namespace carina::ir
