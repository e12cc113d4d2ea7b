// SPDX-License-Identifier: Apache-2.0
#include "cpu/kernel_form.hpp"

#include <algorithm>

#include "cpu/kernel_schema.hpp"
#include "cpu/rewrites.hpp"
#include "lower/decompose_rules.hpp"

namespace carina::cpu {
namespace {

/// `rewrites` for operators that no kernel computes as they are.
void addForMissing(std::vector<ir::Rewrite>& all, const std::vector<ir::Rewrite>& rewrites) {
  for (const ir::Rewrite& rewrite : rewrites) {
    all.emplace_back([rewrite](ir::Node* node) -> Result<bool> {
      return findKernelFor(node->opName()) ? Result<bool>(false) : rewrite(node);
    });
  }
}

}  // namespace

Status toKernelForm(ir::Graph& graph) {
  lower::eraseAssertions(graph);
  CARINA_RETURN_IF_ERROR(lower::foldConstants(graph, lower::FoldQuantization::Yes));
  std::vector<ir::Rewrite> rewrites{lower::removeIdentity};
  addPointwiseRewrites(rewrites);
  addMatrixRewrites(rewrites);
  addWindowRewrites(rewrites);
  addMoveRewrites(rewrites);
  std::vector<ir::Rewrite> decompositions;
  lower::addMatrixRewrites(decompositions);
  lower::addNormRewrites(decompositions);
  lower::addAttentionRewrites(decompositions);
  lower::addPointwiseRewrites(decompositions);
  lower::addRecurrentRewrites(decompositions);
  addForMissing(rewrites, decompositions);
  CARINA_RETURN_IF_ERROR(ir::rewriteToFixpoint(graph, rewrites));
  CARINA_RETURN_IF_ERROR(lower::foldConstants(graph, lower::FoldQuantization::Yes));
  graph.eraseDeadNodes();
  return {};
}

}  // namespace carina::cpu
