// SPDX-License-Identifier: Apache-2.0
#include "pipeline/assemble.hpp"

#include <limits>
#include <unordered_map>

#include "aten/ops.hpp"
#include "npu/payload.hpp"
#include "pte/method_builder.hpp"

namespace carina::pipeline {
namespace {

std::vector<int32_t> sizesOf(const ir::Value& value) {
  return {value.shape().begin(), value.shape().end()};
}

pte::EthosUSettings settingsOf(const npu::Machine& machine, bool integerIo) {
  return {std::string(machine.target->name), machine.system.name, machine.memory.name, integerIo};
}

/// Turns the nodes of a partitioned graph into calls, in order.
class Assembler {
 public:
  Assembler(const partition::Partitioned& partitioned, std::span<const compiler::CompiledProgram> compiled, bool integerIo)
      : partitioned_(partitioned), compiled_(compiled), integerIo_(integerIo), builder_(program_) {}

  Result<pte::Program> run() {
    const ir::Graph& graph = partitioned_.graph;
    for (const ir::Value* input : graph.inputs()) {
      values_[input] = builder_.input(pte::fromDType(input->dtype()), sizesOf(*input));
    }
    for (ir::Node* node : graph.nodes()) CARINA_RETURN_IF_ERROR(place(node));
    if (!errors_.empty()) return Error(std::move(errors_));
    for (const ir::Value* output : graph.outputs()) builder_.output(valueOf(output));
    CARINA_RETURN_IF_ERROR(builder_.finish());
    return std::move(program_);
  }

 private:
  pte::ValueId valueOf(const ir::Value* value) {
    auto [it, isNew] = values_.try_emplace(value, -1);
    if (isNew) {
      CARINA_CHECK(value->isConstant(), "value is used before the node that makes it");
      it->second = builder_.constant(pte::fromDType(value->dtype()), sizesOf(*value), value->constant().bytes());
    }
    return it->second;
  }

  static pte::QuantParams params(double scale, int64_t zeroPoint, int64_t low, int64_t high, DType dtype) {
    return {static_cast<double>(static_cast<float>(scale)), zeroPoint, low, high, pte::fromDType(dtype)};
  }

  Status place(ir::Node* node) {
    if (auto q = ir::dynCast<aten::QuantizePerTensor>(node)) {
      values_[node->result()] =
          builder_.quantize(valueOf(q.input()), params(q.scale(), q.zeroPoint(), q.quantMin(), q.quantMax(), q.dtype()),
                            pte::QuantKernels::QuantizedDecomposed);
    } else if (auto dq = ir::dynCast<aten::DequantizePerTensor>(node)) {
      values_[node->result()] = builder_.dequantize(
          valueOf(dq.input()), params(dq.scale(), dq.zeroPoint(), dq.quantMin(), dq.quantMax(), dq.dtype()),
          pte::QuantKernels::QuantizedDecomposed);
    } else if (auto cast = ir::dynCast<aten::ToDtype>(node); cast && isWholeConversion(cast)) {
      values_[node->result()] = builder_.convert(valueOf(cast.self()), pte::fromDType(cast.dtype()));
    } else if (node->is(partition::delegateCallDef())) {
      return placeDelegate(node);
    } else {
      refuse(node);
    }
    return {};
  }

  Status placeDelegate(const ir::Node* node) {
    size_t index = 0;
    while (index < partitioned_.delegates.size() && partitioned_.delegates[index].call != node) ++index;
    CARINA_CHECK(index < compiled_.size(), "delegate call without a compiled part");
    const compiler::CompiledProgram& part = compiled_[index];

    pte::Delegate delegate;
    delegate.id = "EthosUBackend";
    CARINA_TRY(const pte::DelegateBlob blob, delegateBlob(part));
    delegate.blob = pte::buildDelegateBlob(blob);
    delegate.specs = pte::ethosUCompileSpecs(settingsOf(part.machine, integerIo_));

    std::vector<pte::ValueId> inputs, outputs;
    for (const ir::Value* operand : node->operands()) inputs.push_back(valueOf(operand));
    for (const ir::Value* result : node->results()) {
      values_[result] = builder_.activation(pte::fromDType(result->dtype()), sizesOf(*result));
      outputs.push_back(values_[result]);
    }
    builder_.delegate(std::move(delegate), inputs, outputs);
    return {};
  }

  /// int64 <-> int32 at program inputs and outputs: what the runtime's conversion kernel does.
  static bool isWholeConversion(const aten::ToDtype& cast) {
    const auto whole = [](DType dtype) { return dtype == DType::Int32 || dtype == DType::Int64; };
    return whole(cast.self()->dtype()) && whole(cast.dtype());
  }

  void refuse(const ir::Node* node) {
    std::string reason = fmt::format("{} is left to the CPU, and the runtime has no kernel for it", node->opName());
    std::string remedy = "change the network so that the operator is delegated";
    for (const partition::Refusal& refusal : partitioned_.refusals) {
      if (!node->location() || refusal.node != node->location()->name) continue;
      reason += "; it is not on the NPU because: " + refusal.reason;
      if (!refusal.remedy.empty()) remedy = refusal.remedy;
    }
    errors_.push_back({std::move(reason), std::move(remedy), "", node->where()});
    for (const ir::Value* result : node->results()) {
      values_[result] = builder_.activation(pte::fromDType(result->dtype()), sizesOf(*result));
    }
  }

  const partition::Partitioned& partitioned_;
  std::span<const compiler::CompiledProgram> compiled_;
  bool integerIo_;
  pte::Program program_;
  pte::MethodBuilder builder_;
  std::unordered_map<const ir::Value*, pte::ValueId> values_;
  std::vector<Diagnostic> errors_;
};

}  // namespace

Result<pte::DelegateBlob> delegateBlob(const compiler::CompiledProgram& compiled) {
  pte::DelegateBlob blob;
  CARINA_TRY(const std::vector<uint8_t> payload, npu::buildPayload(*compiled.machine.target, compiled.commands));
  const ByteSpan bytes = std::as_bytes(std::span(payload));
  blob.payload.assign(bytes.begin(), bytes.end());
  if (compiled.arenaBytes > std::numeric_limits<int32_t>::max()) {
    return fail("the arena needs {} bytes, a program holds at most 2 GiB", compiled.arenaBytes);
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

Result<pte::Program> assembleProgram(const partition::Partitioned& partitioned,
                                     std::span<const compiler::CompiledProgram> compiled, bool integerIo) {
  return Assembler(partitioned, compiled, integerIo).run();
}

}  // namespace carina::pipeline
