// SPDX-License-Identifier: Apache-2.0
#include "pipeline/cpu_check.hpp"

#include <algorithm>
#include <cmath>

namespace carina::pipeline {

Result<CpuCheck> CpuCheck::create(const ProgramGraph& program) {
  CpuCheck check(program);
  CARINA_RETURN_IF_ERROR(check.cut());
  CARINA_TRY(auto executor, aten::Executor::create(*check.nodes_));
  check.executor_.emplace(std::move(executor));
  return check;
}

Status CpuCheck::cut() {
  nodes_ = std::make_unique<ir::Graph>("cpu");
  std::vector<ir::Value*> outputs;
  for (const ir::Node* node : program_->graph.nodes()) {
    if (node->is(partition::delegateCallDef())) continue;
    std::unordered_map<const ir::Value*, ir::Value*> mapping;
    for (ir::Value* operand : node->operands()) {
      if (!operand || mapping.count(operand) != 0) continue;
      if (operand->isConstant()) {
        mapping[operand] = nodes_->addConstant(operand->constant());
        continue;
      }
      mapping[operand] = nodes_->addInput(operand->type);
      operands_.push_back(operand);
    }
    CARINA_TRY(ir::Node* const copy, ir::cloneNode(*node, *nodes_, mapping));
    for (size_t i = 0; i < copy->results().size(); ++i) {
      copy->result(i)->name.clear();
      outputs.push_back(copy->result(i));
      values_.push_back(node->result(i));
      owner_.push_back(results_.size());
    }
    results_.push_back({std::string(node->opName()), node->where()});
  }
  nodes_->setOutputs(std::move(outputs));
  return {};
}

Result<Tensor> CpuCheck::actual(const ir::Value& value, const std::map<pte::ValueId, Tensor>& stored) const {
  const auto id = program_->storage.find(&value);
  const auto found = id == program_->storage.end() ? stored.end() : stored.find(id->second);
  if (found == stored.end() || found->second.numElements() != value.numElements() ||
      found->second.dtype() != value.dtype()) {
    return fail(Code::UnsupportedProgram, "the program did not compute value '{}'", value.name);
  }
  return found->second.reshaped(value.shape());
}

Status CpuCheck::add(std::span<const Tensor> inputs, const device::RunOutcome& outcome) {
  std::map<pte::ValueId, Tensor> stored;
  const ir::Graph& graph = program_->graph;
  for (const auto& [id, tensor] : outcome.stats.kernelResults) stored[id] = tensor;
  size_t next = 0;
  for (const ir::Node* node : graph.nodes()) {
    if (!node->is(partition::delegateCallDef())) continue;
    if (next == outcome.stats.delegates.size())
      return fail(Code::UnsupportedProgram, "the program ran another number of NPU parts");
    const device::DelegateRun& run = outcome.stats.delegates[next++];
    for (size_t i = 0; i < node->results().size() && i < run.outputs.size(); ++i)
      stored[program_->storage.at(node->result(i))] = run.outputs[i];
  }
  // Last: state is what it was before the call, whatever has been written over it.
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    stored[program_->storage.at(graph.inputs()[i])] = inputs[i];
  std::vector<Tensor> operands;
  for (const ir::Value* operand : operands_) {
    CARINA_TRY(Tensor tensor, actual(*operand, stored));
    operands.push_back(std::move(tensor));
  }
  CARINA_TRY(const std::vector<Tensor> references, executor_->run(operands));
  for (size_t i = 0; i < references.size(); ++i) {
    if (values_[i]->numElements() == 0) continue;
    CARINA_TRY(const Tensor result, actual(*values_[i], stored));
    compare(results_[owner_[i]], references[i], result);
  }
  return {};
}

void CpuCheck::compare(CpuResult& result, const Tensor& reference, const Tensor& actual) {
  result.elements += reference.numElements();
  if (!isFloat(reference.dtype())) {
    for (int64_t i = 0; i < reference.numElements(); ++i)
      result.mismatches += reference.integerAt(i) != actual.integerAt(i);
    return;
  }
  double largest = 0;
  for (int64_t i = 0; i < reference.numElements(); ++i) {
    if (const double magnitude = std::abs(reference.realAt(i)); std::isfinite(magnitude))
      largest = std::max(largest, magnitude);
  }
  const double allowed = 1e-5 * largest + 1e-6;
  for (int64_t i = 0; i < reference.numElements(); ++i) {
    const double want = reference.realAt(i), got = actual.realAt(i);
    if (want == got || (std::isnan(want) && std::isnan(got))) continue;
    const double share = std::abs(want - got) / allowed;
    result.mismatches += !(share <= 1.0);
    if (std::isfinite(share)) result.worst = std::max(result.worst, share);
  }
}

}  // namespace carina::pipeline
