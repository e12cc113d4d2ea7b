// SPDX-License-Identifier: Apache-2.0
#include "pipeline/loop_choice.hpp"

#include "aten/control_flow.hpp"
#include "ethosn/targets/variant.hpp"
#include "pipeline/inference_time.hpp"
#include "pipeline/part_turns.hpp"
#include "quantize/loops.hpp"

namespace carina::pipeline {
namespace {

/// Steps of the loops over slices in a graph and its regions; a nested loop counts once, regardless of the
/// iterations around it.
int64_t stepsOf(const ir::Graph& graph) {
  int64_t steps = 0;
  for (const ir::Node* node : graph.nodes()) {
    for (const auto& region : node->regions()) steps += stepsOf(*region);
    if (!node->is(aten::scanDef())) continue;
    const aten::Scan scan(*node);
    steps += scan.turns * scan.chunk;
  }
  return steps;
}

double costOf(const Build& build) {
  const auto bytes = programBytes(build);
  CARINA_CHECK(bytes.ok(), "a program that was just built can be written");
  auto cost = static_cast<double>(*bytes);
  if (build.options.optimize == compiler::Optimize::Size) {
    for (const compiler::CompiledProgram& part : build.compiled) cost += static_cast<double>(part.arenaBytes);
    return cost;
  }
  const auto inference = inferenceOf(build, "");
  return cost * static_cast<double>(inference ? inference->cycles() : npuCycles(build));
}

}  // namespace

Front cloneOf(const Front& front) {
  Front copy;
  copy.nodes = front.nodes;
  copy.state = front.state;
  copy.quantized = front.quantized.clone();
  copy.isTosa = front.isTosa;
  copy.isTfl = front.isTfl;
  copy.tflite = front.tflite;
  copy.inputTypes = front.inputTypes;
  copy.outputTypes = front.outputTypes;
  copy.keptFloat = front.keptFloat;
  copy.wideIntegers = front.wideIntegers;
  copy.ends = front.ends;
  copy.inputs = front.inputs;
  copy.outputs = front.outputs;
  copy.accuracy = front.accuracy;
  return copy;
}

bool weighsLoops(const Front& front, const Options& options) {
  if (options.unroll || options.target == "cpu" || ethosn::isEthosNName(options.target) || front.isTosa ||
      front.isTfl)
    return false;
  const int64_t steps = stepsOf(front.quantized);
  return steps > 0 && steps <= kMaxWeighed;
}

Result<Front> withoutLoops(const Front& front) {
  Front copy = cloneOf(front);
  if (front.source) copy.source = front.source->clone();
  copy.quantization = front.quantization;
  copy.warnings = front.warnings;
  CARINA_RETURN_IF_ERROR(aten::forEachGraph(copy.quantized, quantize::unrollAllLoops));
  return copy;
}

bool isCheaper(const Build& a, const Build& b) {
  return costOf(a) < costOf(b);
}

}  // namespace carina::pipeline
