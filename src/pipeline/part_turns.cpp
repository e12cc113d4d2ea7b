// SPDX-License-Identifier: Apache-2.0
#include "pipeline/part_turns.hpp"

#include "aten/control_flow.hpp"

namespace carina::pipeline {
namespace {

void collect(const ir::Graph& graph, int64_t turns, std::vector<int64_t>& result) {
  for (const ir::Node* node : graph.nodes()) {
    if (node->is(partition::delegateCallDef())) result.push_back(turns);
    if (!aten::isControlFlow(*node)) continue;
    const int64_t times = node->is(aten::scanDef()) ? aten::Scan(*node).turns : 1;
    for (const auto& region : node->regions()) collect(*region, turns * times, result);
  }
}

template <typename Number>
int64_t sumOf(const Build& build, Number number) {
  const std::vector<int64_t> turns = iterationsOfParts(build.graph());
  int64_t sum = 0;
  for (size_t i = 0; i < build.compiled.size(); ++i) sum += number(build.compiled[i]) * turns[i];
  return sum;
}

}  // namespace

std::vector<int64_t> iterationsOfParts(const ir::Graph& graph) {
  std::vector<int64_t> turns;
  collect(graph, 1, turns);
  return turns;
}

npu::Cycles npuCycles(const Build& build) {
  return sumOf(build, [](const compiler::CompiledProgram& part) { return part.cycles; });
}

std::optional<compiler::CycleBound> npuCycleBound(const Build& build) {
  if (build.compiled.empty()) return std::nullopt;
  const std::vector<int64_t> turns = iterationsOfParts(build.graph());
  compiler::CycleBound sum;
  for (size_t i = 0; i < build.compiled.size(); ++i) {
    const auto bound = compiler::cycleBound(build.compiled[i]);
    if (!bound) return std::nullopt;
    sum.engine += bound->engine * turns[i];
    for (size_t port = 0; port < sum.ports.size(); ++port) sum.ports[port] += bound->ports[port] * turns[i];
  }
  return sum;
}

int64_t npuMacs(const Build& build) {
  return sumOf(build, [](const compiler::CompiledProgram& part) { return part.macs; });
}

}  // namespace carina::pipeline
