// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tflite_check.hpp"

#include <algorithm>

#include "npu/isa/payload.hpp"
#include "tflite/control_flow.hpp"
#include "tflite/resolver.hpp"
#include "tflite/rewriter.hpp"
#include "tflite/vela.hpp"

namespace carina::pipeline {
namespace {

void countOperators(const tflite::Model& model, TfliteCheck& check) {
  for (const tflite::Subgraph& subgraph : model.subgraphs) {
    check.tensors += subgraph.tensors.size();
    check.nodes += subgraph.operators.size();
    for (const tflite::Operator& op : subgraph.operators) {
      check.containsControlFlow |= tflite::controlFlowOf(op).has_value();
      auto known = std::find_if(check.operators.begin(), check.operators.end(),
                                [&](const CheckedTfliteOperator& one) { return one.name == op.name; });
      if (known == check.operators.end()) {
        known = check.operators.insert(known, {op.name, 0, tflite::resolverCall(op)});
        if (!known->method)
          check.problems.push_back(
              fmt::format("{} has no kernel in TensorFlow Lite for Microcontrollers", op.name));
      }
      ++known->count;
    }
  }
}

/// `program`: null if there is no plan.
void measureMemory(const tflite::Model& model, const tflite::NpuProgram* program, TfliteCheck& check) {
  for (size_t g = 0; g < model.subgraphs.size(); ++g) {
    const tflite::Subgraph& subgraph = model.subgraphs[g];
    for (size_t i = 0; i < subgraph.tensors.size(); ++i) {
      const tflite::Tensor& tensor = subgraph.tensors[i];
      const int64_t bytes = tflite::tensorBytes(tensor).value_or(0);
      if (tensor.isVariable) check.variableBytes += bytes;
      if (!tflite::liesInArena(tensor)) continue;
      if (program && program->subgraphs[g].offsets[i]) continue;
      ++check.unplanned;
      check.unplannedBytes += bytes;
    }
  }
}

Status checkCalls(const tflite::NpuProgram& program, TfliteCheck& check) {
  check.calls = program.calls.size();
  check.plannedBytes = static_cast<int64_t>(program.arenaBytes);
  for (const tflite::NpuCall& call : program.calls) {
    CARINA_TRY(const npu::Payload payload, npu::readPayload(call.payload));
    CARINA_TRY(const npu::Target* const target, npu::payloadTarget(payload));
    if (check.target.empty()) check.target = target->name;
    if (check.target != target->name)
      check.problems.push_back(
          fmt::format("its NPU operators are for {} and for {}", check.target, target->name));
    if (program.sharesScratch(call)) continue;
    const tflite::Tensor& fast =
        program.subgraphs[call.subgraph].tensors[static_cast<size_t>(call.fastScratch)];
    check.fastScratchBytes = std::max(check.fastScratchBytes, tflite::tensorBytes(fast).value_or(0));
  }
  return {};
}

}  // namespace

Result<TfliteCheck> checkTflite(ByteSpan file) {
  TfliteCheck check;
  check.fileBytes = static_cast<int64_t>(file.size());
  CARINA_TRY(const tflite::Model model, tflite::readModel(file));
  countOperators(model, check);
  std::optional<tflite::NpuProgram> program;
  if (!tflite::npuCalls(model).empty()) {
    CARINA_TRY(program, tflite::npuProgram(model));
    if (const Status status = checkCalls(*program, check); !status.ok())
      check.problems.push_back(status.error().diagnostics().front().str());
  }
  measureMemory(model, program ? &*program : nullptr, check);
  if (auto arena = tfliteArena(model, program ? &*program : nullptr); arena.ok()) {
    check.arena = *arena;
  } else {
    check.problems.push_back(arena.error().diagnostics().front().str());
  }
  return check;
}

}  // namespace carina::pipeline
