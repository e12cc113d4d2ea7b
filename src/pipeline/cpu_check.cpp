// SPDX-License-Identifier: Apache-2.0
#include "pipeline/cpu_check.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "aten/control_flow.hpp"

namespace carina::pipeline {

/// What a run did, instruction by instruction, and the contents of memory after the part followed so far.
struct CpuCheck::Trace {
  const device::RunStats& stats;
  size_t nextKernel = 0, nextDelegate = 0;
  std::map<pte::ValueId, Tensor> memory;
  device::KernelValues kernelValues;
};

Result<CpuCheck> CpuCheck::create(const ProgramGraph& program) {
  CpuCheck check(program);
  Status status;
  aten::forEachNode(program.graph, [&](const ir::Node& node) {
    if (status.ok() && !aten::isControlFlow(node)) status = check.cut(node);
  });
  CARINA_RETURN_IF_ERROR(std::move(status));
  return check;
}

Status CpuCheck::cut(const ir::Node& node) {
  const InstructionRange range = program_->instructions.at(&node);
  ofNode_.resize(std::max(ofNode_.size(), static_cast<size_t>(range.end)), false);
  for (int32_t i = range.first; i < range.end; ++i) ofNode_[static_cast<size_t>(i)] = true;
  if (node.is(partition::delegateCallDef())) return {};
  NodeCheck check;
  check.graph = std::make_unique<ir::Graph>("cpu");
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  for (ir::Value* operand : node.operands()) {
    if (!operand || mapping.count(operand) != 0) continue;
    if (operand->isConstant()) {
      mapping[operand] = check.graph->addConstant(operand->constant());
      continue;
    }
    mapping[operand] = check.graph->addInput(operand->type);
    check.operands.push_back(operand);
  }
  CARINA_TRY(ir::Node* const copy, ir::cloneNode(node, *check.graph, mapping));
  for (ir::Value* result : copy->results()) result->name.clear();
  check.graph->setOutputs(copy->results());
  CARINA_TRY(auto executor, aten::Executor::create(*check.graph));
  check.executor = std::make_unique<aten::Executor>(std::move(executor));
  check.result = results_.size();
  results_.push_back({std::string(node.opName()), node.where()});
  nodes_.emplace(&node, std::move(check));
  return {};
}

void CpuCheck::place(const ir::Value& value, const Tensor& tensor, Trace& trace) const {
  trace.memory[program_->storage.at(&value)] = tensor;
}

Result<Tensor> CpuCheck::actual(const ir::Value& value, const Trace& trace) const {
  if (value.isConstant()) return value.constant();
  const auto id = program_->storage.find(&value);
  const auto found = id == program_->storage.end() ? trace.memory.end() : trace.memory.find(id->second);
  if (found == trace.memory.end() || found->second.numElements() != value.numElements() ||
      found->second.dtype() != value.dtype()) {
    return fail(Code::UnsupportedProgram, "the program did not compute value '{}'", value.name);
  }
  return found->second.reshaped(value.shape());
}

Result<std::vector<Tensor>> CpuCheck::actual(std::span<ir::Value* const> values, const Trace& trace) const {
  std::vector<Tensor> tensors;
  for (const ir::Value* value : values) {
    CARINA_TRY(Tensor tensor, actual(*value, trace));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Status CpuCheck::follow(const ir::Graph& graph, Trace& trace) {
  for (const ir::Node* node : graph.nodes()) {
    if (node->is(aten::condDef())) {
      CARINA_RETURN_IF_ERROR(followCond(*node, trace));
    } else if (node->is(aten::whileLoopDef())) {
      CARINA_RETURN_IF_ERROR(followLoop(*node, trace));
    } else if (node->is(aten::scanDef())) {
      CARINA_RETURN_IF_ERROR(followScan(*node, trace));
    } else if (node->is(partition::delegateCallDef())) {
      const std::vector<Tensor>* outputs = trace.stats.delegateOutputs(trace.nextDelegate++);
      if (outputs == nullptr)
        return fail(Code::UnsupportedProgram, "the program ran an unexpected number of NPU parts");
      for (size_t i = 0; i < node->results().size() && i < outputs->size(); ++i)
        place(*node->result(i), (*outputs)[i], trace);
    } else {
      CARINA_RETURN_IF_ERROR(followCall(*node, trace));
    }
  }
  return {};
}

Status CpuCheck::followRegion(const ir::Graph& region, std::span<const Tensor> inputs, Trace& trace,
                              std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) place(*region.inputs()[i], inputs[i], trace);
  CARINA_RETURN_IF_ERROR(follow(region, trace));
  CARINA_TRY(outputs, actual(region.outputs(), trace));
  return {};
}

Status CpuCheck::followCond(const ir::Node& node, Trace& trace) {
  CARINA_TRY(const Tensor predicate, actual(*node.operand(0), trace));
  CARINA_TRY(const std::vector<Tensor> operands, actual(node.operandGroup(1), trace));
  std::vector<Tensor> results;
  const ir::Graph& branch = node.region(predicate.integerAt(0) != 0 ? 0 : 1);
  CARINA_RETURN_IF_ERROR(followRegion(branch, operands, trace, results));
  for (size_t i = 0; i < results.size(); ++i) place(*node.result(i), results[i], trace);
  return {};
}

Status CpuCheck::followLoop(const ir::Node& node, Trace& trace) {
  CARINA_TRY(std::vector<Tensor> values, actual(node.operands(), trace));
  for (;;) {  // ends where the program's loop ended
    std::vector<Tensor> condition, next;
    CARINA_RETURN_IF_ERROR(followRegion(node.region(0), values, trace, condition));
    if (condition[0].integerAt(0) == 0) break;
    const auto before = std::pair(trace.nextKernel, trace.nextDelegate);
    CARINA_RETURN_IF_ERROR(followRegion(node.region(1), values, trace, next));
    std::move(next.begin(), next.end(), values.begin());
    const bool idle = std::pair(trace.nextKernel, trace.nextDelegate) == before;
    if (idle && trace.nextKernel == trace.stats.kernelResults.size())
      return fail(Code::UnsupportedProgram, "the program left the loop too early").at(node.where());
  }
  for (size_t i = 0; i < node.results().size(); ++i) place(*node.result(i), values[i], trace);
  return {};
}

Status CpuCheck::followScan(const ir::Node& node, Trace& trace) {
  const aten::Scan scan(node);
  CARINA_TRY(const std::vector<Tensor> operands, actual(node.operands(), trace));
  std::vector<Tensor> values = operands, results;
  for (const ir::Value* result : node.results())
    results.push_back(Tensor::uninitialized(result->dtype(), result->shape()));
  for (int64_t turn = 0; turn < scan.turns; ++turn) {
    for (size_t i = scan.carried; i < scan.carried + scan.sliced; ++i)
      values[i] = aten::sliceOf(operands[i], scan, turn);
    std::vector<Tensor> next;
    CARINA_RETURN_IF_ERROR(followRegion(node.region(0), values, trace, next));
    for (size_t i = 0; i < next.size(); ++i) {
      if (i < scan.carried)
        values[i] = results[i] = std::move(next[i]);
      else
        aten::putSlice(results[i], scan, turn, next[i]);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) place(*node.result(i), results[i], trace);
  return {};
}

Status CpuCheck::followCall(const ir::Node& node, Trace& trace) {
  NodeCheck& check = nodes_.at(&node);
  std::vector<Tensor> operands;
  for (const ir::Value* operand : check.operands) {
    CARINA_TRY(Tensor tensor, actual(*operand, trace));
    operands.push_back(std::move(tensor));
  }
  const InstructionRange range = program_->instructions.at(&node);
  const auto& kernels = trace.stats.kernelResults;
  const auto belongs = [&](const device::KernelResult& result) {
    const auto at = static_cast<int32_t>(result.instruction);
    return at >= range.first && at < range.end;
  };
  if (range.first != range.end) {
    const auto copies = [&](const device::KernelResult& result) {
      return result.instruction >= ofNode_.size() || !ofNode_[result.instruction];
    };
    while (trace.nextKernel < kernels.size() && copies(kernels[trace.nextKernel])) ++trace.nextKernel;
  }
  std::set<std::pair<uint32_t, int32_t>> seen;  // the next iteration of a loop yields them again
  for (; trace.nextKernel < kernels.size() && belongs(kernels[trace.nextKernel]); ++trace.nextKernel) {
    const device::KernelResult& result = kernels[trace.nextKernel];
    if (!seen.emplace(result.instruction, result.value).second) break;
    trace.memory[result.value] = trace.kernelValues.replay(result);
  }
  CARINA_TRY(const std::vector<Tensor> references, check.executor->run(operands));
  for (size_t i = 0; i < references.size(); ++i) {
    if (node.result(i)->numElements() == 0) continue;
    CARINA_TRY(const Tensor result, actual(*node.result(i), trace));
    compare(results_[check.result], references[i], result);
  }
  return {};
}

Status CpuCheck::add(std::span<const Tensor> inputs, const device::RunOutcome& outcome) {
  Trace trace{outcome.stats, 0, 0, {}, {}};
  const ir::Graph& graph = program_->graph;
  for (size_t i = 0; i < graph.inputs().size(); ++i) place(*graph.inputs()[i], inputs[i], trace);
  return follow(graph, trace);
}

void CpuCheck::compare(CpuResult& result, const Tensor& reference, const Tensor& actual) {
  result.elements += reference.numElements();
  if (reference.dtype() == actual.dtype() && std::ranges::equal(reference.bytes(), actual.bytes())) return;
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
