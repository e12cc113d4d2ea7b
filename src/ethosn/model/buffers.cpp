// SPDX-License-Identifier: Apache-2.0
#include "ethosn/model/buffers.hpp"

namespace carina::ethosn::model {
namespace {

/// The kernel module allocates whole pages, and transfers in bricks may read up to their end.
constexpr size_t kPage = 4096;
constexpr size_t kMaxBytes = size_t{512} << 20;

size_t roundUpToPage(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

Result<Buffers> Buffers::make(const CompiledNetwork& network, std::span<const ByteSpan> inputs,
                              bool hazards) {
  CARINA_RETURN_IF_ERROR(checkBuffers(network));
  if (inputs.size() != network.inputs.size()) {
    return fail(Code::InputMismatch, "got {} inputs, expected {}", inputs.size(), network.inputs.size());
  }
  size_t total = intermediateBytes(network) + network.constantDma.size();
  size_t count = network.controlUnitBuffers.size() + network.dmaBuffers.size() + network.intermediates.size();
  for (const auto* infos : {&network.inputs, &network.outputs}) {
    count += infos->size();
    for (const BufferInfo& info : *infos) total += roundUpToPage(info.size);
  }
  if (total > kMaxBytes) {
    return fail(Code::Excessive, "the buffers of the network take {} bytes; the model has {}", total,
                kMaxBytes);
  }
  Buffers buffers;
  buffers.entries_.resize(count);
  const auto addMemory = [&](size_t bytes, bool accesses) {
    Memory memory;
    memory.bytes.resize(roundUpToPage(bytes));
    if (accesses && hazards) memory.accesses = AccessMap(memory.bytes.size() / kDramCell);
    buffers.memories_.push_back(std::move(memory));
    return buffers.memories_.size() - 1;
  };
  for (const auto* infos : {&network.inputs, &network.outputs}) {
    const bool input = infos == &network.inputs;
    for (size_t i = 0; i < infos->size(); ++i) {
      const BufferInfo& info = (*infos)[i];
      const size_t memory = addMemory(info.size, true);
      buffers.entries_[info.id] = {true, input ? BufferKind::Input : BufferKind::Output, memory, 0,
                                   info.size};
      if (!input) {
        buffers.outputs_.push_back(info.id);
        continue;
      }
      if (inputs[i].size() != info.size) {
        return fail(Code::InputMismatch, "input {} has {} bytes; the network takes {}", i, inputs[i].size(),
                    info.size);
      }
      const auto* data = reinterpret_cast<const uint8_t*>(inputs[i].data());
      std::copy(data, data + inputs[i].size(), buffers.memories_[memory].bytes.begin());
    }
  }
  const size_t intermediate = addMemory(intermediateBytes(network), true);
  for (const BufferInfo& info : network.intermediates) {
    buffers.entries_[info.id] = {true, BufferKind::Intermediate, intermediate, info.offset, info.size};
  }
  const size_t constant = addMemory(network.constantDma.size(), false);
  std::copy(network.constantDma.begin(), network.constantDma.end(),
            buffers.memories_[constant].bytes.begin());
  for (const BufferInfo& info : network.dmaBuffers) {
    buffers.entries_[info.id] = {true, BufferKind::ConstantDma, constant, info.offset, info.size};
  }
  return buffers;
}

Result<Buffers::View> Buffers::find(uint32_t id) {
  if (id >= entries_.size() || !entries_[id].known) {
    return fail(Code::InvalidStream, "buffer {} is not one that an agent may read or write", id);
  }
  const Entry& entry = entries_[id];
  Memory& memory = memories_[entry.memory];
  return View{entry.kind, std::span(memory.bytes).subspan(entry.offset), entry.size,
              memory.accesses.empty() ? nullptr : &memory.accesses, entry.offset};
}

std::vector<std::vector<uint8_t>> Buffers::outputs() const {
  std::vector<std::vector<uint8_t>> out;
  for (const uint32_t id : outputs_) {
    const std::vector<uint8_t>& bytes = memories_[entries_[id].memory].bytes;
    out.emplace_back(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(entries_[id].size));
  }
  return out;
}

}  // namespace carina::ethosn::model
