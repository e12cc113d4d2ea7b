// SPDX-License-Identifier: Apache-2.0
// The network of a build as a graph (network_graph.hpp).
#include "pipeline/network_graph.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "partition/partition.hpp"

namespace carina::pipeline {
namespace {

std::unordered_set<std::string> namesOnNpu(const Build& build) {
  std::unordered_set<std::string> names;
  for (const partition::Delegate& delegate : build.partitioned.delegates) {
    for (const ir::Node* node : delegate.tosa.nodes()) {
      if (node->location()) names.insert(node->location()->name);
    }
  }
  return names;
}

}  // namespace

std::map<std::string, double> sqnrByValue(const Build& build) {
  std::map<std::string, double> result;
  if (!build.quantization) return result;
  for (const quantize::TensorReport& tensor : build.quantization->tensors) {
    const double decibels = tensor.sqnr.decibels();
    if (!tensor.isConstant && std::isfinite(decibels)) result[tensor.name] = decibels;
  }
  return result;
}

std::unordered_map<std::string_view, std::string_view> operatorsByName(std::span<const SourceNode> nodes) {
  std::unordered_map<std::string_view, std::string_view> operators;
  for (const SourceNode& node : nodes) operators.emplace(node.name, node.op);
  return operators;
}

std::vector<NetworkNode> networkGraph(const Build& build) {
  const std::optional<ir::Graph>& graph = build.source ? build.source : build.simulation;
  std::vector<NetworkNode> network;
  if (!graph) return network;
  const std::unordered_set<std::string> onNpu = namesOnNpu(build);
  const std::map<std::string, double> sqnr = sqnrByValue(build);
  std::unordered_map<std::string, const partition::Refusal*> refused;
  for (const partition::Refusal& refusal : build.partitioned.refusals)
    refused.emplace(refusal.node, &refusal);
  const auto exported = operatorsByName(build.nodes);
  // Operators that one was decomposed into are adjacent: the last of them represents all.
  std::unordered_map<std::string, size_t> byName;
  std::unordered_map<const ir::Node*, size_t> placeOf;
  for (const ir::Node* node : graph->nodes()) {
    if (partition::isQuantize(*node) || partition::isDequantize(*node)) {
      // Transparent: its readers read what it was computed from.
      const ir::Node* producer = node->operand(0)->producer();
      if (const auto at = placeOf.find(producer); at != placeOf.end()) placeOf.emplace(node, at->second);
      continue;
    }
    const ir::LocationRef& location = node->location();
    const std::string name =
        location && !location->name.empty() ? location->name : std::string(node->opName());
    const auto [at, isNew] = byName.emplace(name, network.size());
    if (isNew) {
      NetworkNode made;
      made.name = name;
      const auto op = exported.find(name);
      made.op = std::string(op == exported.end() ? node->opName() : op->second);
      if (location) {
        made.modulePath = location->modulePath;
        made.source = location->source;
      }
      const auto why = refused.find(name);
      if (why != refused.end()) {
        made.place = NodePlace::Cpu;
        made.reason = why->second->reason;
        made.remedy = why->second->remedy;
      } else if (onNpu.count(name) != 0) {
        made.place = NodePlace::Npu;
      } else if (!build.hasNpu()) {
        made.place = NodePlace::Cpu;
      }
      network.push_back(std::move(made));
    }
    placeOf.emplace(node, at->second);
    // The last operator of a decomposition produces its result.
    if (!node->results().empty()) {
      const auto found = sqnr.find(node->result(0)->name);
      if (found != sqnr.end()) network[at->second].sqnr = found->second;
    }
    std::vector<size_t>& inputs = network[at->second].inputs;
    for (const ir::Value* operand : node->operands()) {
      const auto from = operand ? placeOf.find(operand->producer()) : placeOf.end();
      // A backward edge belongs to a node that shares its name with an earlier one.
      if (from == placeOf.end() || from->second >= at->second) continue;
      if (std::find(inputs.begin(), inputs.end(), from->second) == inputs.end())
        inputs.push_back(from->second);
    }
  }
  return network;
}

}  // namespace carina::pipeline
