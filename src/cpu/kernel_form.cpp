// SPDX-License-Identifier: Apache-2.0
#include "cpu/kernel_form.hpp"

#include <algorithm>

#include "aten/ops.hpp"
#include "cpu/kernel_schema.hpp"
#include "cpu/rewrites.hpp"
#include "lower/decompose_rules.hpp"

namespace carina::cpu {
namespace {

/// Whether a kernel computes the node as it is. That of index_put takes numbers of elements, no masks.
bool hasKernel(const ir::Node& node) {
  const auto put = ir::dynCast<aten::IndexPut>(&node);
  const auto isMask = [](const ir::Value* index) {
    return index && (index->dtype() == DType::Bool || index->dtype() == DType::UInt8);
  };
  if (put && std::any_of(put.indices().begin(), put.indices().end(), isMask)) return false;
  return findKernelFor(node.opName()) != nullptr;
}

/// `rewrites` for operators that no kernel computes as they are.
void addForMissing(std::vector<ir::Rewrite>& all, const std::vector<ir::Rewrite>& rewrites) {
  for (const ir::Rewrite& rewrite : rewrites) {
    all.emplace_back([rewrite](ir::Node* node) -> Result<bool> {
      return hasKernel(*node) ? Result<bool>(false) : rewrite(node);
    });
  }
}

}  // namespace

Status toKernelForm(ir::Graph& graph) {
  lower::eraseAssertions(graph);
  CARINA_RETURN_IF_ERROR(lower::foldConstants(graph, lower::FoldQuantization::Yes));
  std::vector<ir::Rewrite> rewrites{lower::removeIdentity, lower::rewriteReducedType,
                                    lower::rewriteScatteredSource};
  addPointwiseRewrites(rewrites);
  addMatrixRewrites(rewrites);
  addWindowRewrites(rewrites);
  addMoveRewrites(rewrites);
  addGridRewrites(rewrites);
  std::vector<ir::Rewrite> decompositions;
  lower::addMatrixRewrites(decompositions);
  lower::addNormRewrites(decompositions);
  lower::addAttentionRewrites(decompositions);
  lower::addPointwiseRewrites(decompositions);
  lower::addRecurrentRewrites(decompositions);
  lower::addEinsumRewrites(decompositions);
  lower::addIndexRewrites(decompositions);
  lower::addScatterRewrites(decompositions);
  lower::addScanRewrites(decompositions);
  lower::addFunctionRewrites(decompositions);
  lower::addTypeRewrites(decompositions);
  lower::addWindowRewrites(decompositions);
  lower::addPoolRewrites(decompositions);
  lower::addResizeRewrites(decompositions);
  lower::addGridRewrites(decompositions);
  addForMissing(rewrites, decompositions);
  CARINA_RETURN_IF_ERROR(ir::rewriteToFixpoint(graph, rewrites));
  CARINA_RETURN_IF_ERROR(lower::foldConstants(graph, lower::FoldQuantization::Yes));
  graph.eraseDeadNodes();
  return {};
}

}  // namespace carina::cpu
