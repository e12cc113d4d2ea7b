// SPDX-License-Identifier: Apache-2.0
#include "pipeline/partitioning.hpp"

#include <algorithm>
#include <set>

#include "quantize/annotate.hpp"

namespace carina::pipeline {
namespace {

/// What would put a refused TOSA operator on an NPU.
std::string remedyFor(const ir::Node& op, const npu::Target& target, const std::string& reason) {
  const auto latest = npu::findTarget("ethos-u85-256");
  if (!target.isU85() && latest && !compiler::supports(op, **latest))
    return "compile for an Ethos-U85, which has it";
  if (reason.find(" > ") != std::string::npos || reason.find(" < ") != std::string::npos) {
    return "bring the value within the limit";
  }
  return "";
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

using Names = std::set<std::pair<std::string, std::string>>;  // of a node and its operator

/// What the quantizer has no integer form for, and therefore leaves in float.
Names leftInFloat(const ir::Graph& graph) {
  Names names;
  for (const ir::Node* node : graph.nodes()) {
    if (node->location() && quantize::roleOf(*node) == quantize::Role::Float)
      names.emplace(node->location()->name, std::string(node->opName()));
  }
  return names;
}

/// A value that is not quantized is the fault of the network's quantizer, or of an operator that no NPU
/// computes.
void explainFloat(partition::Partitioned& partitioned, const Names& floats) {
  for (partition::Refusal& refusal : partitioned.refusals) {
    const bool unquantized = refusal.reason.find("is not quantized") != std::string::npos ||
                             refusal.reason.find("without a quantize node") != std::string::npos;
    if (!unquantized || floats.count({refusal.node, refusal.op}) == 0) continue;
    refusal.reason = fmt::format("{} has no integer form: it computes in float", refusal.op);
    refusal.remedy = "replace it in the network by operators that docs/operators.md lists for the NPU";
  }
}

}  // namespace

Result<partition::Partitioned> partitionFor(const Options& options, const npu::Target& target, Front& front) {
  partition::Options partitioning;
  partitioning.supports = [&target](const ir::Node& op) { return compiler::supports(op, target); };
  partitioning.remedy = [&target](const ir::Node& op, const std::string& reason) {
    return remedyFor(op, target, reason);
  };
  partitioning.keepOffOps = options.cpuOps;
  partitioning.keepOffNames = options.cpuNames;
  partitioning.keepOffModules = options.cpuModules;
  partitioning.keepOffNames.insert(partitioning.keepOffNames.end(), front.keptFloat.begin(),
                                   front.keptFloat.end());
  for (const SourceNode& node : front.nodes) partitioning.sourceOps.emplace(node.name, node.op);
  const Names floats = leftInFloat(front.quantized);
  auto partitioned = partition::partition(std::move(front.quantized), partitioning);
  if (!partitioned) return std::move(partitioned).error().inFile(options.model.string());
  for (const std::string& request : partitioned->unmatched) {
    if (contains(front.keptFloat, request)) continue;  // folded into a neighbour
    return fail("no operator of the network matches '{}', which is to stay on the CPU", request)
        .inFile(options.model.string())
        .withRemedy(fmt::format("'carina ops --target {} {}' lists operators, names and modules",
                                options.target, options.model.filename().string()));
  }
  explainFloat(*partitioned, floats);
  return partitioned;
}

}  // namespace carina::pipeline
