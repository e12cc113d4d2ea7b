// SPDX-License-Identifier: Apache-2.0
#include "ethosn/stream/compiled_network.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/file.hpp"

namespace carina::ethosn {
namespace {

constexpr std::string_view kNetworkMagic = "ENCN";
constexpr std::string_view kRemedy =
    "compile the network with release 25.03 of Arm's driver stack, or with Carina";

class NetworkReader {
 public:
  explicit NetworkReader(ByteSpan bytes) : bytes_(bytes) {}

  size_t offset() const { return offset_; }
  size_t left() const { return bytes_.size() - offset_; }
  Error ends(std::string_view what) const {
    return fail(Code::Damaged, "the file ends within {}", what).at(fmt::format("offset {:#x}", offset_));
  }

  Result<uint32_t> word(std::string_view what) {
    if (left() < 4) return ends(what);
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(bytes_[offset_ + i]) << (8 * i);
    offset_ += 4;
    return value;
  }

  Result<ByteSpan> sized(std::string_view what) {
    CARINA_TRY(const uint32_t size, word(what));
    if (size > left()) {
      return fail(Code::Damaged, "{} of {} bytes does not fit the {} bytes left", what, size, left())
          .at(fmt::format("offset {:#x}", offset_ - 4));
    }
    const ByteSpan bytes = bytes_.subspan(offset_, size);
    offset_ += size;
    return bytes;
  }

  Result<std::vector<BufferInfo>> infos(std::string_view what) {
    CARINA_TRY(const uint32_t count, word(what));
    constexpr size_t kSmallest = 16;
    if (count > left() / kSmallest) {
      return fail(Code::Damaged, "{} of {} entries does not fit the {} bytes left", what, count, left())
          .at(fmt::format("offset {:#x}", offset_ - 4));
    }
    std::vector<BufferInfo> infos(count);
    for (BufferInfo& info : infos) {
      CARINA_TRY(info.id, word(what));
      CARINA_TRY(info.offset, word(what));
      CARINA_TRY(info.size, word(what));
      CARINA_TRY(const ByteSpan name, sized("the name of a buffer"));
      info.name = std::string(asText(name));
    }
    return infos;
  }

 private:
  ByteSpan bytes_;
  size_t offset_ = 0;
};

class Writer {
 public:
  void word(uint64_t value) {
    CARINA_CHECK(value <= 0xFFFFFFFFu, "sizes in a compiled network fit 32 bits");
    for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<uint8_t>(value >> shift));
  }
  void sized(std::span<const uint8_t> bytes) {
    word(bytes.size());
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  void infos(const std::vector<BufferInfo>& infos) {
    word(infos.size());
    for (const BufferInfo& info : infos) {
      word(info.id);
      word(info.offset);
      word(info.size);
      word(info.name.size());
      out.insert(out.end(), info.name.begin(), info.name.end());
    }
  }
  std::vector<uint8_t> out;
};

/// The five tables in the order of the file.
template <typename Network>
auto tables(Network& network) {
  return std::array{&network.inputs, &network.outputs, &network.controlUnitBuffers, &network.dmaBuffers,
                    &network.intermediates};
}

Status checkConstants(const std::vector<BufferInfo>& infos, size_t dataBytes, BufferKind kind) {
  std::vector<const BufferInfo*> sorted;
  for (const BufferInfo& info : infos) {
    if (uint64_t{info.offset} + info.size > dataBytes) {
      return fail(Code::InvalidStream, "{} buffer {} at {} of {} bytes lies outside of its data of {} bytes",
                  bufferKindName(kind), info.id, info.offset, info.size, dataBytes);
    }
    sorted.push_back(&info);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const BufferInfo* a, const BufferInfo* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (uint64_t{sorted[i - 1]->offset} + sorted[i - 1]->size > sorted[i]->offset) {
      return fail(Code::InvalidStream, "{} buffers {} and {} overlap", bufferKindName(kind),
                  sorted[i - 1]->id, sorted[i]->id);
    }
  }
  return {};
}

}  // namespace

const char* bufferKindName(BufferKind kind) {
  constexpr const char* kNames[] = {"input", "output", "control_unit", "constant", "intermediate"};
  return kNames[static_cast<size_t>(kind)];
}

bool isCompiledNetwork(ByteSpan bytes) {
  return asText(bytes).starts_with(kNetworkMagic);
}

std::vector<uint8_t> writeCompiledNetwork(const CompiledNetwork& network) {
  Writer writer;
  writer.out.assign(kNetworkMagic.begin(), kNetworkMagic.end());
  for (const uint32_t part : {kNetworkMajor, kNetworkMinor, kNetworkPatch}) writer.word(part);
  writer.sized(network.constantDma);
  writer.sized(network.constantControlUnit);
  for (const auto* infos : tables(network)) writer.infos(*infos);
  return std::move(writer.out);
}

Result<CompiledNetwork> readCompiledNetwork(ByteSpan bytes) {
  if (!isCompiledNetwork(bytes))
    return fail(Code::WrongKind, "not a compiled Ethos-N network: it does not begin with \"ENCN\"");
  NetworkReader reader(bytes);
  std::array<uint32_t, 4> header{};
  for (uint32_t& word : header) {
    CARINA_TRY(word, reader.word("the header"));
  }
  if (header[1] != kNetworkMajor || header[2] != kNetworkMinor || header[3] != kNetworkPatch) {
    return fail(Code::UnknownVersion, "unknown compiled network version {}.{}.{}, expected {}.{}.{}",
                header[1], header[2], header[3], kNetworkMajor, kNetworkMinor, kNetworkPatch)
        .at("offset 0x4")
        .withRemedy(kRemedy);
  }
  CompiledNetwork network;
  const auto copy = [](ByteSpan from) {
    const auto* data = reinterpret_cast<const uint8_t*>(from.data());
    return std::vector<uint8_t>(data, data + from.size());
  };
  CARINA_TRY(const ByteSpan dma, reader.sized("the constant data"));
  CARINA_TRY(const ByteSpan controlUnit, reader.sized("the data of the control unit"));
  network.constantDma = copy(dma);
  network.constantControlUnit = copy(controlUnit);
  constexpr std::string_view kTables[] = {
      "the table of inputs", "the table of outputs", "the table of control unit buffers",
      "the table of constant buffers", "the table of intermediate buffers"};
  size_t next = 0;
  for (auto* infos : tables(network)) {
    CARINA_TRY(*infos, reader.infos(kTables[next++]));
  }
  if (reader.left() != 0) {
    return fail(Code::InvalidStream, "{} bytes follow the last table", reader.left())
        .at(fmt::format("offset {:#x}", reader.offset()));
  }
  return network;
}

Status checkBuffers(const CompiledNetwork& network) {
  std::map<uint32_t, BufferKind> seen;
  size_t kind = 0;
  for (const auto* infos : tables(network)) {
    for (const BufferInfo& info : *infos) {
      const auto here = static_cast<BufferKind>(kind);
      const auto [other, fresh] = seen.emplace(info.id, here);
      if (!fresh) {
        return fail(Code::InvalidStream, "buffer id {} appears in the tables {} and {}", info.id,
                    bufferKindName(other->second), bufferKindName(here));
      }
      if (info.size == 0)
        return fail(Code::InvalidStream, "{} buffer {} has no bytes", bufferKindName(here), info.id);
      if (info.offset % kBufferAlignment != 0) {
        return fail(Code::InvalidStream, "{} buffer {} at {} is not aligned to {}", bufferKindName(here),
                    info.id, info.offset, kBufferAlignment);
      }
      if (uint64_t{info.offset} + info.size > 0xFFFFFFFFu) {
        return fail(Code::InvalidStream, "{} buffer {} at {} of {} bytes ends beyond 4 GiB",
                    bufferKindName(here), info.id, info.offset, info.size);
      }
    }
    ++kind;
  }
  for (uint32_t id = 0; id < seen.size(); ++id) {
    if (!seen.contains(id))
      return fail(Code::InvalidStream, "no table has buffer id {}, though there are {} buffers", id,
                  seen.size());
  }
  CARINA_RETURN_IF_ERROR(commandStreamBytes(network));
  CARINA_RETURN_IF_ERROR(
      checkConstants(network.dmaBuffers, network.constantDma.size(), BufferKind::ConstantDma));
  return {};
}

Result<ByteSpan> commandStreamBytes(const CompiledNetwork& network) {
  if (network.controlUnitBuffers.size() != 1 || network.controlUnitBuffers[0].id != 0) {
    return fail(Code::InvalidStream,
                "buffer 0 is not the only buffer of the control unit, which holds the command stream");
  }
  CARINA_RETURN_IF_ERROR(checkConstants(network.controlUnitBuffers, network.constantControlUnit.size(),
                                        BufferKind::ConstantControlUnit));
  const BufferInfo& info = network.controlUnitBuffers[0];
  return ByteSpan(std::as_bytes(std::span(network.constantControlUnit))).subspan(info.offset, info.size);
}

std::optional<FoundBuffer> findBuffer(const CompiledNetwork& network, uint32_t id) {
  size_t kind = 0;
  for (const auto* infos : tables(network)) {
    for (const BufferInfo& info : *infos) {
      if (info.id == id) return FoundBuffer{static_cast<BufferKind>(kind), &info};
    }
    ++kind;
  }
  return std::nullopt;
}

uint64_t intermediateBytes(const CompiledNetwork& network) {
  uint64_t bytes = 0;
  for (const BufferInfo& info : network.intermediates)
    bytes = std::max(bytes, uint64_t{info.offset} + info.size);
  return bytes;
}

}  // namespace carina::ethosn
