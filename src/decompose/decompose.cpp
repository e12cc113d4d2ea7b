// SPDX-License-Identifier: Apache-2.0
// The decomposition pass: removes identities, computes constants, and decomposes composites into small
// operators.
#include "decompose/decompose.hpp"

#include <algorithm>
#include <span>
#include <unordered_set>

#include "aten/control_flow.hpp"
#include "aten/executor.hpp"
#include "aten/operator_facts.hpp"
#include "decompose/cpu_rewrites.hpp"
#include "decompose/rewrites.hpp"
#include "ir/pass.hpp"

namespace carina::decompose {
namespace {

// Nodes whose results have more elements than this are not folded.
constexpr int64_t kMaxFoldedElements = int64_t{1} << 24;

bool isQuantization(const ir::Node& node) {
  return ir::isa<aten::QuantizePerTensor>(&node) || ir::isa<aten::DequantizePerTensor>(&node) ||
         ir::isa<aten::QuantizePerChannel>(&node) || ir::isa<aten::DequantizePerChannel>(&node);
}

/// Operators that return their first operand unchanged (if the types are equal).
bool isIdentity(const ir::Node& node) {
  if (node.operands().empty() || !node.operands()[0] || node.results().size() != 1 ||
      node.operands()[0]->type != node.result()->type)
    return false;
  if (const auto op = ir::dynCast<aten::Dropout>(&node)) return !op.train();
  if (const auto op = ir::dynCast<aten::FeatureDropout>(&node)) return !op.train();
  if (const auto op = ir::dynCast<aten::AlphaDropout>(&node)) return !op.train();
  return aten::factsOf(node).identity;
}

}  // namespace

Result<bool> removeIdentity(ir::Node* node) {
  if (!isIdentity(*node)) return false;
  ir::Graph& graph = node->graph();
  graph.replaceAllUses(node->result(), node->operands()[0]);
  graph.erase(node);
  return true;
}

Status foldConstants(ir::Graph& graph, FoldQuantization quantization) {
  ir::Graph folded("constants");
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  std::vector<ir::Node*> nodes;
  for (ir::Node* node : graph.nodes()) {
    if (!node->def().has(ir::kPure) || !node->regions().empty() ||
        (quantization == FoldQuantization::No && isQuantization(*node)) || !aten::canExecute(node->def()))
      continue;
    const auto& operands = node->operands();
    const bool known = std::all_of(operands.begin(), operands.end(), [&](const ir::Value* v) {
      return !v || v->isConstant() || mapping.count(v) != 0;
    });
    const bool small = std::all_of(node->results().begin(), node->results().end(),
                                   [](const ir::Value* v) { return v->numElements() <= kMaxFoldedElements; });
    if (!known || !small) continue;
    for (ir::Value* operand : operands) {
      if (operand && operand->isConstant() && mapping.count(operand) == 0) {
        mapping[operand] = folded.addConstant(operand->constant());
      }
    }
    CARINA_TRY([[maybe_unused]] ir::Node* const copy, ir::cloneNode(*node, folded, mapping));
    nodes.push_back(node);
  }
  if (nodes.empty()) return {};
  const std::unordered_set<const ir::Node*> inside(nodes.begin(), nodes.end());
  std::vector<ir::Value*> wanted, outputs;
  for (ir::Node* node : nodes) {
    for (ir::Value* result : node->results()) {
      const bool used =
          result->isGraphOutput() || std::any_of(result->uses().begin(), result->uses().end(),
                                                 [&](const ir::Use& u) { return inside.count(u.node) == 0; });
      if (!used) continue;
      wanted.push_back(result);
      outputs.push_back(mapping.at(result));
    }
  }
  folded.setOutputs(outputs);
  CARINA_TRY(const std::vector<Tensor> values, aten::execute(folded, {}));
  for (size_t i = 0; i < wanted.size(); ++i)
    graph.replaceAllUses(wanted[i], graph.addConstant(values[i], wanted[i]->name));
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) graph.erase(*node);
  graph.eraseUnusedConstants();
  return {};
}

void eraseAssertions(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    if (node->opName() == "aten._assert_tensor_metadata.default" && node->results().empty())
      graph.erase(node);
  }
}

namespace {

using Family = void (*)(std::vector<ir::Rewrite>& rewrites);

/// For the NPU, in the order in which rewrites are tried at a node. The first that applies wins.
constexpr Family kNpuFamilies[] = {addEinsumRewrites,      addMatrixRewrites,    addNormRewrites,
                                   addAttentionRewrites,   addPointwiseRewrites, addFunctionRewrites,
                                   addTransposedRewrites,  addRecurrentRewrites, addTypeRewrites,
                                   addLogicRewrites,       addWindowRewrites,    addPoolRewrites,
                                   addResizeRewrites,      addGridRewrites,      addComputedGridRewrites,
                                   addWholeNumberRewrites, addIndexRewrites,     addScatterRewrites,
                                   addScanRewrites,        addOrderRewrites,     addExtremeRewrites};

/// Into operators that have CPU kernels; applied to every node.
constexpr Family kCpuFamilies[] = {cpu::addPointwiseRewrites, cpu::addMatrixRewrites, cpu::addWindowRewrites,
                                   cpu::addMoveRewrites, cpu::addGridRewrites};

/// Those for the NPU that also lead to operators with CPU kernels; applied to operators without one.
constexpr Family kCpuFallbacks[] = {
    addMatrixRewrites,    addNormRewrites,     addAttentionRewrites, addPointwiseRewrites,
    addRecurrentRewrites, addEinsumRewrites,   addIndexRewrites,     addScatterRewrites,
    addScanRewrites,      addFunctionRewrites, addOrderRewrites,     addTypeRewrites,
    addWindowRewrites,    addPoolRewrites,     addResizeRewrites,    addGridRewrites};

std::vector<ir::Rewrite> rewritesOf(std::span<const Family> families) {
  std::vector<ir::Rewrite> rewrites;
  for (const Family add : families) add(rewrites);
  return rewrites;
}

/// The rewrites, of nodes that `isKept` does not accept. It outlives them.
std::vector<ir::Rewrite> exceptFor(const std::function<bool(const ir::Node&)>& isKept,
                                   std::vector<ir::Rewrite> rewrites) {
  for (ir::Rewrite& rewrite : rewrites) {
    rewrite = [rewrite = std::move(rewrite), &isKept](ir::Node* node) -> Result<bool> {
      return isKept(*node) ? Result<bool>(false) : rewrite(node);
    };
  }
  return rewrites;
}

Status graphForNpu(ir::Graph& graph, const std::function<bool(const ir::Node&)>& isKept) {
  eraseAssertions(graph);
  std::vector<ir::Rewrite> rewrites = rewritesOf(kNpuFamilies);
  if (isKept) rewrites = exceptFor(isKept, std::move(rewrites));
  rewrites.insert(rewrites.begin(), removeIdentity);
  CARINA_RETURN_IF_ERROR(foldConstants(graph, FoldQuantization::No));
  CARINA_RETURN_IF_ERROR(ir::rewriteToFixpoint(graph, rewrites));
  CARINA_RETURN_IF_ERROR(foldConstants(graph, FoldQuantization::No));
  // In a separate pass: composites have already become small operators.
  std::vector<ir::Rewrite> ranks{removeIdentity};
  addRankRewrites(ranks);
  CARINA_RETURN_IF_ERROR(ir::rewriteToFixpoint(graph, ranks));
  // For constants that only exist after folding: a matrix of einsum is the weight of a linear layer.
  CARINA_RETURN_IF_ERROR(ir::rewriteToFixpoint(graph, rewrites));
  CARINA_RETURN_IF_ERROR(foldConstants(graph, FoldQuantization::No));
  graph.eraseDeadNodes();
  return {};
}

Status graphForKernels(ir::Graph& graph, const std::function<bool(const ir::Node&)>& hasKernel) {
  eraseAssertions(graph);
  CARINA_RETURN_IF_ERROR(foldConstants(graph, FoldQuantization::Yes));
  std::vector<ir::Rewrite> rewrites = rewritesOf(kCpuFamilies);
  rewrites.insert(rewrites.begin(), removeIdentity);
  for (ir::Rewrite& rewrite : exceptFor(hasKernel, rewritesOf(kCpuFallbacks)))
    rewrites.push_back(std::move(rewrite));
  CARINA_RETURN_IF_ERROR(ir::rewriteToFixpoint(graph, rewrites));
  CARINA_RETURN_IF_ERROR(foldConstants(graph, FoldQuantization::Yes));
  graph.eraseDeadNodes();
  return {};
}

}  // namespace

Status forNpu(ir::Graph& graph, const std::function<bool(const ir::Node&)>& isKept) {
  return aten::forEachGraph(graph, [&](ir::Graph& inner) { return graphForNpu(inner, isKept); });
}

Status forKernels(ir::Graph& graph, const std::function<bool(const ir::Node&)>& hasKernel) {
  return aten::forEachGraph(graph, [&](ir::Graph& inner) { return graphForKernels(inner, hasKernel); });
}

}  // namespace carina::decompose
