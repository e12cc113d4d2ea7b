// SPDX-License-Identifier: Apache-2.0
#include "pipeline/assemble.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "cpu/emit.hpp"
#include "cpu/kernel_form.hpp"
#include "ir/verifier.hpp"
#include "npu/isa/payload.hpp"
#include "npu/targets/recorded_memories.hpp"
#include "pipeline/integer_io.hpp"
#include "pte/method_builder.hpp"

namespace carina::pipeline {
namespace {

pte::EthosUSettings settingsOf(const npu::Machine& machine, bool integerIo) {
  return {std::string(machine.target->name), machine.system.name, machine.memory.name, integerIo,
          npu::describeMemories(machine)};
}

using cpu::sizesOf;

/// Turns the nodes of a partitioned graph into calls, in order.
class Assembler {
 public:
  Assembler(const MethodParts& parts, const std::string& method, pte::Program& program, pte::StatePool& pool)
      : partitioned_(parts.partitioned),
        compiled_(parts.compiled),
        integerIo_(parts.integerIo),
        state_(parts.state),
        pool_(pool),
        builder_(program, method) {}

  Result<ProgramGraph> run() {
    ir::Graph graph = partitioned_.graph.clone();
    CARINA_RETURN_IF_ERROR(cpu::toKernelForm(graph));
    ir::checkVerified(graph, "kernel form");
    CARINA_RETURN_IF_ERROR(placeInputs(graph));
    findWrittenInPlace(graph);
    for (ir::Node* node : graph.nodes()) CARINA_RETURN_IF_ERROR(place(node));
    if (!errors_.empty()) return Error(std::move(errors_));
    placeOutputs(graph);
    CARINA_RETURN_IF_ERROR(builder_.finish());
    ProgramGraph computed{std::move(graph), {}};
    for (const auto& [value, id] : values_) computed.storage[value] = builder_.storage(id);
    return computed;
  }

 private:
  Status placeInputs(const ir::Graph& graph) {
    const size_t callers = ir::callerInputs(graph, state_);
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const ir::Value* input = graph.inputs()[i];
      const pte::ScalarType type = pte::fromDType(input->dtype());
      if (i < callers) {
        values_[input] = builder_.input(type, sizesOf(*input));
        continue;
      }
      const ir::StateVariable& variable = state_[i - callers];
      const Tensor initial = convert(asInput(variable.initial, *input), input->dtype());
      CARINA_TRY(pte::Tensor tensor, pool_.variable(variable.name, type, sizesOf(*input), initial.bytes()));
      values_[input] = builder_.state(std::move(tensor));
      stateValues_.push_back(values_[input]);
    }
    return {};
  }

  /// New contents that a delegate may write over the old ones at once: nothing but delegates up to this one
  /// reads the old, and nothing reads the new.
  void findWrittenInPlace(const ir::Graph& graph) {
    std::unordered_map<const ir::Node*, size_t> order;
    for (const ir::Node* node : graph.nodes()) order.emplace(node, order.size());
    const auto& outputs = graph.outputs();
    const size_t inputs = ir::callerInputs(graph, state_), callers = ir::callerOutputs(graph, state_);
    for (size_t i = 0; i < state_.size(); ++i) {
      const ir::Value* before = graph.inputs()[inputs + i];
      const ir::Value* after = outputs[callers + i];
      const ir::Node* maker = after->producer();
      const bool made = maker && maker->is(partition::delegateCallDef()) && after->uses().empty() &&
                        std::count(outputs.begin(), outputs.end(), after) == 1;
      if (!made || before->isGraphOutput()) continue;
      const auto& uses = before->uses();
      const bool free = std::all_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
        return use.node->is(partition::delegateCallDef()) && order.at(use.node) <= order.at(maker);
      });
      if (free) inPlace_.emplace(after, values_.at(before));
    }
  }

  bool isState(pte::ValueId value) const {
    return std::find(stateValues_.begin(), stateValues_.end(), value) != stateValues_.end();
  }

  pte::ValueId copyOf(pte::ValueId value) { return builder_.convert(value, builder_.tensor(value).type); }

  /// Results, then the new state. What shows old state is copied before that is overwritten.
  void placeOutputs(const ir::Graph& graph) {
    const size_t callers = ir::callerOutputs(graph, state_);
    for (size_t i = 0; i < callers; ++i) {
      const pte::ValueId value = valueOf(graph.outputs()[i]);
      builder_.output(isState(builder_.storage(value)) ? copyOf(value) : value);
    }
    std::vector<std::pair<pte::ValueId, pte::ValueId>> writes;  // to, from
    for (size_t i = 0; i < state_.size(); ++i) {
      const pte::ValueId from = valueOf(graph.outputs()[callers + i]), storage = builder_.storage(from);
      if (storage == stateValues_[i]) continue;
      writes.emplace_back(stateValues_[i], isState(storage) ? copyOf(from) : from);
    }
    for (const auto& [to, from] : writes) builder_.copyInto(to, from);
  }

  pte::ValueId valueOf(const ir::Value* value) {
    auto [it, isNew] = values_.try_emplace(value, -1);
    if (isNew) {
      CARINA_CHECK(value->isConstant(), "value is used before the node that makes it");
      it->second =
          builder_.constant(pte::fromDType(value->dtype()), sizesOf(*value), value->constant().bytes());
    }
    return it->second;
  }

  Status place(const ir::Node* node) {
    if (node->is(partition::delegateCallDef())) return placeDelegate(node);
    auto results = cpu::emitCall(builder_, *node, [this](const ir::Value* value) { return valueOf(value); });
    if (!results) {
      refuse(*node, results.error().diagnostics().front().message);
      return {};
    }
    for (size_t i = 0; i < results->size(); ++i) values_[node->result(i)] = (*results)[i];
    return {};
  }

  Status placeDelegate(const ir::Node* node) {
    // The graph is a copy: its delegate calls are those of the original in the same order.
    if (nextDelegate_ >= compiled_.size()) {
      return fail(Code::NeedsWholeNpu, "a TOSA graph is there for an NPU")
          .withRemedy("name an NPU with --target, or run the graph itself: carina run");
    }
    const compiler::CompiledProgram& part = compiled_[nextDelegate_++];

    pte::Delegate delegate;
    delegate.id = "EthosUBackend";
    CARINA_TRY(const pte::DelegateBlob blob, delegateBlob(part));
    delegate.blob = pte::buildDelegateBlob(blob);
    delegate.specs = pte::ethosUCompileSpecs(settingsOf(part.machine, integerIo_));

    std::vector<pte::ValueId> inputs, outputs;
    for (const ir::Value* operand : node->operands()) inputs.push_back(valueOf(operand));
    for (const ir::Value* result : node->results()) {
      const auto over = inPlace_.find(result);
      values_[result] = over != inPlace_.end()
                            ? over->second
                            : builder_.activation(pte::fromDType(result->dtype()), sizesOf(*result));
      outputs.push_back(values_[result]);
    }
    builder_.delegate(std::move(delegate), inputs, outputs);
    return {};
  }

  void refuse(const ir::Node& node, std::string reason) {
    Code code = Code::MissingKernel;
    std::string remedy = "change the network so that this operator is not needed, or is delegated";
    for (const partition::Refusal& refusal : partitioned_.refusals) {
      if (!node.location() || refusal.node != node.location()->name) continue;
      reason += "; it is not on the NPU because: " + refusal.reason;
      if (!refusal.remedy.empty()) remedy = refusal.remedy;
      code = refusal.code;
    }
    errors_.push_back({std::move(reason), std::move(remedy), "", node.where(), code});
    for (const ir::Value* result : node.results()) {
      values_[result] = builder_.activation(pte::fromDType(result->dtype()), sizesOf(*result));
    }
  }

  const partition::Partitioned& partitioned_;
  std::span<const compiler::CompiledProgram> compiled_;
  bool integerIo_;
  const ir::State& state_;
  pte::StatePool& pool_;
  pte::MethodBuilder builder_;
  std::vector<pte::ValueId> stateValues_;
  std::unordered_map<const ir::Value*, pte::ValueId> inPlace_;  // results of delegates, over which state
  std::unordered_map<const ir::Value*, pte::ValueId> values_;
  std::vector<Diagnostic> errors_;
  size_t nextDelegate_ = 0;
};

}  // namespace

Result<pte::DelegateBlob> delegateBlob(const compiler::CompiledProgram& compiled) {
  pte::DelegateBlob blob;
  CARINA_TRY(const std::vector<uint8_t> payload,
             npu::buildPayload(*compiled.machine.target, compiled.commands));
  const ByteSpan bytes = std::as_bytes(std::span(payload));
  blob.payload.assign(bytes.begin(), bytes.end());
  if (compiled.arenaBytes > std::numeric_limits<int32_t>::max()) {
    return fail(Code::TooLarge, "the arena needs {} bytes, a program holds at most 2 GiB",
                compiled.arenaBytes);
  }
  blob.constants = compiled.constants;
  blob.scratchBytes = static_cast<uint32_t>(compiled.arenaBytes);
  for (const compiler::IoTensor& io : compiled.inputs) {
    blob.inputs.push_back(pte::BlobIo::of(io.shape, static_cast<int32_t>(dtypeSize(io.dtype)), io.offset));
  }
  for (const compiler::IoTensor& io : compiled.outputs) {
    blob.outputs.push_back(pte::BlobIo::of(io.shape, static_cast<int32_t>(dtypeSize(io.dtype)), io.offset));
  }
  return blob;
}

Result<ProgramGraph> assembleMethod(const MethodParts& parts, const std::string& method,
                                    pte::Program& program, pte::StatePool& pool) {
  return Assembler(parts, method, program, pool).run();
}

}  // namespace carina::pipeline
