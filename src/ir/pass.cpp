// SPDX-License-Identifier: Apache-2.0
#include "ir/pass.hpp"

#include "ir/invalid_node.hpp"
#include "ir/verifier.hpp"

namespace carina::ir {

// The steps of an unrolled recurrence are a tensor size, which the size of the file does not bound.
// Quantizing and compiling take about 0.1 ms and 15 KB per operator, and a stream holds 16 MiB of commands.
constexpr size_t kMaxNodesOfRewrites = 100'000;

Status runPasses(Graph& graph, std::span<const Pass> passes, const PassListener& listener) {
  for (const Pass& pass : passes) {
    CARINA_RETURN_IF_ERROR(rejectInvalidNodes(std::string(pass.name), [&] { return pass.run(graph); }));
    if (verifiesEachPass() || &pass == &passes.back()) checkVerified(graph, pass.name);
    if (listener) listener(pass.name, graph);
  }
  return {};
}

Status rewriteToFixpoint(Graph& graph, std::span<const Rewrite> rewrites, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    bool changed = false;
    for (Node* node : graph.nodes()) {
      const std::string place = node->where();
      for (const Rewrite& rewrite : rewrites) {
        CARINA_TRY(const bool rewrote, rejectInvalidNodes(place, [&] { return rewrite(node); }));
        if (rewrote) {
          if (graph.numNodes() > kMaxNodesOfRewrites) {
            return fail(Code::TooLarge, "it would expand the network to more than {} operators",
                        kMaxNodesOfRewrites)
                .at(place)
                .withRemedy("reduce its tensor sizes or its number of steps, or split the network");
          }
          changed = true;
          break;  // `node` may be gone
        }
      }
    }
    graph.eraseDeadNodes();
    if (changed) continue;
    if (verifiesEachPass()) checkVerified(graph, "rewriteToFixpoint");
    return {};
  }
  CARINA_UNREACHABLE("rewrites do not reach a fixpoint");
}

}  // namespace carina::ir
