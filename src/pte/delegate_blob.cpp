// SPDX-License-Identifier: Apache-2.0
#include "pte/delegate_blob.hpp"

#include <cstring>

#include "base/file.hpp"
#include "format/delegate_blob.hpp"
#include "pte/flat_bytes.hpp"

namespace carina::pte {

namespace layout = carina::format::blob;

BlobIo BlobIo::of(const Shape& shape, int32_t elementBytes, int64_t offset) {
  CARINA_CHECK(shape.size() <= layout::kIoRank, "a delegate input or output has at most 6 dimensions");
  BlobIo io;
  for (size_t d = 0; d < shape.size(); ++d)
    io.shape[layout::kIoRank - shape.size() + d] = static_cast<int32_t>(shape[d]);
  io.elementBytes = elementBytes;
  io.offset = static_cast<int32_t>(offset);
  return io;
}

int64_t BlobIo::bytes() const {
  int64_t total = elementBytes;
  for (int32_t size : shape) total *= size;
  return total;
}

namespace {

void append(ByteVector& bytes, const void* data, size_t size) {
  const auto* begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}
void append32(ByteVector& bytes, int32_t value) {
  append(bytes, &value, sizeof(value));
}

void appendBlock(ByteVector& out, std::string_view name, ByteSpan payload, bool external = false) {
  std::byte header[layout::kHeaderBytes] = {};
  std::memcpy(header, name.data(), name.size());
  const auto size = static_cast<uint32_t>(payload.size());
  std::memcpy(header + layout::kSizeAt, &size, 4);
  header[layout::kExternalAt] = static_cast<std::byte>(external ? 1 : 0);
  append(out, header, sizeof(header));
  append(out, payload.data(), payload.size());
  out.resize(static_cast<size_t>(roundUp(static_cast<int64_t>(out.size()), layout::kAlignment)));
}

ByteVector ioBlock(const std::vector<BlobIo>& ios) {
  ByteVector bytes;
  append32(bytes, static_cast<int32_t>(ios.size()));
  for (const BlobIo& io : ios) {
    for (int32_t size : io.shape) append32(bytes, size);
    append32(bytes, io.elementBytes);
    append32(bytes, io.offset);
    append32(bytes, io.region);
  }
  return bytes;
}

Result<std::vector<BlobIo>> parseIos(ByteSpan bytes) {
  if (bytes.size() < 4) return fail(Code::Damaged, "a list of {} bytes is truncated", bytes.size());
  const auto count = loadAt<int32_t>(bytes, 0);
  if (count < 0 || static_cast<size_t>(count) > (bytes.size() - 4) / layout::kIoBytes) {
    return fail(Code::Damaged, "a list of {} entries does not fit {} bytes", count, bytes.size());
  }
  std::vector<BlobIo> ios(static_cast<size_t>(count));
  for (size_t i = 0; i < ios.size(); ++i) {
    const ByteSpan record = bytes.subspan(4 + i * layout::kIoBytes, layout::kIoBytes);
    for (size_t d = 0; d < layout::kIoRank; ++d) ios[i].shape[d] = loadAt<int32_t>(record, 4 * d);
    ios[i].elementBytes = loadAt<int32_t>(record, layout::kIoElementSizeAt);
    ios[i].offset = loadAt<int32_t>(record, layout::kIoOffsetAt);
    ios[i].region = loadAt<int32_t>(record, layout::kIoRegionAt);
    if (ios[i].elementBytes <= 0 || ios[i].elementBytes > 8)
      return fail(Code::Damaged, "entry {} has elements of {} bytes", i, ios[i].elementBytes);
    int64_t total = 8;
    for (int32_t size : ios[i].shape) {
      if (size <= 0 || __builtin_mul_overflow(total, size, &total))
        return fail(Code::Damaged, "the shape of entry {} is out of range", i);
    }
  }
  return ios;
}

struct Block {
  std::string name;
  ByteSpan payload;
  bool external = false;
};

Result<Block> readBlock(ByteSpan bytes, size_t& at) {
  if (bytes.size() - at < layout::kHeaderBytes)
    return Error(fail(Code::Damaged, "the blob ends inside a block header")).at(fmt::format("byte {}", at));
  Block block;
  block.name = std::string(asText(bytes.subspan(at, layout::kNameBytes)));
  block.name.resize(std::strlen(block.name.c_str()));
  const auto size = loadAt<uint32_t>(bytes, at + layout::kSizeAt);
  const size_t rest = bytes.size() - at - layout::kHeaderBytes;
  const auto padded = static_cast<uint64_t>(roundUp(size, layout::kAlignment));
  if (padded > rest)
    return Error(fail(Code::Damaged, "block {} of {} bytes is longer than the blob", block.name, size))
        .at(fmt::format("byte {}", at));
  block.external = loadAt<uint8_t>(bytes, at + layout::kExternalAt) != 0;
  block.payload = bytes.subspan(at + layout::kHeaderBytes, size);
  at += layout::kHeaderBytes + padded;
  return block;
}

}  // namespace

ByteVector buildDelegateBlob(const DelegateBlob& blob) {
  return buildDelegateBlob(blob, blob.constants);
}

ByteVector buildDelegateBlob(const DelegateBlob& blob, ByteSpan constants) {
  ByteVector out;
  out.reserve(blob.payload.size() + constants.size() + 1024);
  const auto place = [&](const char* name, ByteSpan bytes, const std::string& key) {
    key.empty() ? appendBlock(out, name, bytes) : appendBlock(out, name, asBytes(key), true);
  };
  appendBlock(out, layout::kBegin, {});
  place(layout::kCommands, blob.payload, blob.payloadKey);
  place(layout::kWeights, constants, blob.constantsKey);
  appendBlock(out, layout::kScratchSize, std::as_bytes(std::span(&blob.scratchBytes, 1)));
  appendBlock(out, layout::kInputs, ioBlock(blob.inputs));
  appendBlock(out, layout::kOutputs, ioBlock(blob.outputs));
  appendBlock(out, layout::kEnd, {});
  return out;
}

Result<DelegateBlob> parseDelegateBlob(ByteSpan bytes) {
  DelegateBlob blob;
  size_t at = 0;
  CARINA_TRY(const Block begin, readBlock(bytes, at));
  if (begin.name != layout::kBegin)
    return fail(Code::WrongKind, "not an Ethos-U delegate blob: it begins with \"{}\"", begin.name);
  unsigned seen = 0;
  for (;;) {
    const size_t start = at;
    CARINA_TRY(const Block block, readBlock(bytes, at));
    const std::string place = fmt::format("byte {}, block {}", start, block.name);
    if (block.name == layout::kEnd) {
      if (at != bytes.size())
        return Error(fail(Code::Damaged, "{} bytes follow the end of the blob", bytes.size() - at)).at(place);
      break;
    }
    unsigned bit = 0;
    if (block.name == layout::kCommands || block.name == layout::kWeights) {
      const bool commands = block.name == layout::kCommands;
      bit = commands ? 1 : 2;
      if (block.external) {
        (commands ? blob.payloadKey : blob.constantsKey) = std::string(asText(block.payload));
      } else {
        (commands ? blob.payload : blob.constants).assign(block.payload.begin(), block.payload.end());
      }
    } else if (block.name == layout::kScratchSize) {
      bit = 4;
      if (block.payload.size() != 4)
        return Error(fail(Code::Damaged, "the scratch size has {} bytes, expected 4 or 8",
                          block.payload.size()))
            .at(place);
      blob.scratchBytes = loadAt<uint32_t>(block.payload, 0);
    } else if (block.name == layout::kInputs || block.name == layout::kOutputs) {
      bit = block.name == layout::kInputs ? 8 : 16;
      auto ios = parseIos(block.payload);
      if (!ios) return std::move(ios).error().at(place);
      (bit == 8 ? blob.inputs : blob.outputs) = std::move(*ios);
    } else {
      return Error(fail(Code::UnknownVersion, "the block has the unknown name \"{}\"", block.name))
          .at(fmt::format("byte {}", start));
    }
    if ((seen & bit) != 0) return Error(fail(Code::Damaged, "the block appears twice")).at(place);
    seen |= bit;
  }
  if (seen != 31)
    return fail(Code::Damaged, "the blob lacks one of cmd_data, weight_data, scratch_size, inputs, outputs");
  return blob;
}

namespace {
constexpr std::string_view kMemories = "carina_vela_ini";
}

std::vector<CompileSpec> ethosUCompileSpecs(const EthosUSettings& settings) {
  const bool u85 = settings.target.starts_with("ethos-u85");
  std::string flags = fmt::format("--accelerator-config={} --output-format=raw", settings.target);
  if (!settings.systemConfig.empty()) flags += " --system-config=" + settings.systemConfig;
  if (!settings.memoryMode.empty()) flags += " --memory-mode=" + settings.memoryMode;
  std::vector<CompileSpec> specs = {
      {"tosa_spec", u85 ? "TOSA-1.0+INT+int16+int4+cf" : "TOSA-1.0+INT+int16+int4+u55"},
      {"compile_flags", flags},
      {"output_format", "vela"},
      {"preserve_io_quantization", settings.quantizedIo ? "True" : "False"},
      {"target", settings.target}};
  if (!settings.memories.empty()) specs.push_back({std::string(kMemories), settings.memories});
  return specs;
}

EthosUSettings ethosUSettings(std::span<const CompileSpec> specs) {
  EthosUSettings settings;
  std::string flags;
  for (const CompileSpec& spec : specs) {
    if (spec.key == "compile_flags") flags = spec.value;
    if (spec.key == "target") settings.target = spec.value;
    if (spec.key == kMemories) settings.memories = spec.value;
    if (spec.key == "preserve_io_quantization") settings.quantizedIo = spec.value == "True";
  }
  const auto option = [&](std::string_view name) -> std::string {
    const size_t at = flags.rfind(name);  // the last one applies, as on a command line
    if (at == std::string::npos) return "";
    const size_t start = at + name.size();
    return flags.substr(start, flags.find(' ', start) - start);
  };
  if (settings.target.empty()) settings.target = option("--accelerator-config=");
  settings.systemConfig = option("--system-config=");
  settings.memoryMode = option("--memory-mode=");
  return settings;
}

}  // namespace carina::pte
