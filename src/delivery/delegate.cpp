// SPDX-License-Identifier: Apache-2.0
#include "delivery/delegate.hpp"

#include <limits>

#include "base/file.hpp"
#include "delivery/compile_cache.hpp"
#include "npu/isa/payload.hpp"
#include "npu/targets/recorded_memories.hpp"
#include "tosa_io/tosa_writer.hpp"

namespace carina::delivery {

pte::EthosUSettings settingsOf(const npu::Machine& machine, bool integerIo) {
  return {std::string(machine.target->name), machine.system.name, machine.memory.name, integerIo,
          npu::describeMemories(machine)};
}

namespace {

/// Without constants.
Result<pte::DelegateBlob> commandBlob(const compiler::CompiledProgram& compiled) {
  pte::DelegateBlob blob;
  CARINA_TRY(const std::vector<uint8_t> payload,
             npu::buildPayload(*compiled.machine.target, compiled.commands));
  const ByteSpan bytes = std::as_bytes(std::span(payload));
  blob.payload.assign(bytes.begin(), bytes.end());
  if (compiled.arenaBytes > std::numeric_limits<int32_t>::max()) {
    return fail(Code::TooLarge, "the arena needs {} bytes, but a program holds at most 2 GiB",
                compiled.arenaBytes);
  }
  blob.scratchBytes = static_cast<uint32_t>(compiled.arenaBytes);
  const auto ioOf = [](const compiler::IoTensor& io) {
    return pte::BlobIo::of(io.shape, static_cast<int32_t>(dtypeSize(io.dtype)), io.offset);
  };
  for (const compiler::IoTensor& io : compiled.inputs) blob.inputs.push_back(ioOf(io));
  for (const compiler::IoTensor& io : compiled.outputs) blob.outputs.push_back(ioOf(io));
  return blob;
}

}  // namespace

Result<pte::DelegateBlob> delegateBlob(const compiler::CompiledProgram& compiled) {
  CARINA_TRY(pte::DelegateBlob blob, commandBlob(compiled));
  blob.constants = compiled.constants;
  return blob;
}

std::string constantsKeyOf(ByteSpan constants) {
  return CompileCache::keyOf(constants, "constants");
}

Result<pte::Delegate> ethosUDelegate(const compiler::CompiledProgram& compiled, bool integerIo,
                                     const std::string& constantsKey) {
  pte::Delegate delegate;
  delegate.id = pte::kEthosUBackend;
  CARINA_TRY(pte::DelegateBlob blob, commandBlob(compiled));
  blob.constantsKey = constantsKey;
  delegate.blob =
      pte::buildDelegateBlob(blob, constantsKey.empty() ? ByteSpan(compiled.constants) : ByteSpan());
  delegate.specs = pte::ethosUCompileSpecs(settingsOf(compiled.machine, integerIo));
  return delegate;
}

Result<pte::Delegate> tosaDelegate(const ir::Graph& tosa, const pte::EthosUSettings& settings) {
  CARINA_TRY(const std::string bytes, tosa_io::writeTosa(tosa));
  pte::Delegate delegate;
  delegate.id = std::string(kTosaBackend);
  const ByteSpan blob = asBytes(bytes);
  delegate.blob.assign(blob.begin(), blob.end());
  // A graph is as large as its weights: in a segment of its own, hosts can map it instead of copying it.
  delegate.inSegment = true;
  delegate.specs = pte::ethosUCompileSpecs(settings);
  for (pte::CompileSpec& spec : delegate.specs) {
    if (spec.key == "output_format") spec.value = "tosa";
  }
  return delegate;
}

}  // namespace carina::delivery
