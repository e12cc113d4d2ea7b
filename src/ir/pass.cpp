// SPDX-License-Identifier: Apache-2.0
#include "ir/pass.hpp"

#include "ir/verifier.hpp"

namespace carina::ir {

Status runPasses(Graph& graph, std::span<const Pass> passes, const PassListener& listener) {
  for (const Pass& pass : passes) {
    CARINA_RETURN_IF_ERROR(pass.run(graph));
    if (auto status = verify(graph); !status.ok()) {
      checkFailed(status.error().str().c_str(), __FILE__, __LINE__, "a pass left an invalid graph");
    }
    if (listener) listener(pass.name, graph);
  }
  return {};
}

Status rewriteToFixpoint(Graph& graph, std::span<const Rewrite> rewrites, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    bool changed = false;
    for (Node* node : graph.nodes()) {
      for (const Rewrite& rewrite : rewrites) {
        CARINA_TRY(const bool rewrote, rewrite(node));
        if (rewrote) {
          changed = true;
          break;  // `node` may be gone
        }
      }
    }
    graph.eraseDeadNodes();
    if (!changed) return {};
  }
  CARINA_UNREACHABLE("rewrites do not reach a fixpoint");
}

}  // namespace carina::ir
