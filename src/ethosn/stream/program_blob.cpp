// SPDX-License-Identifier: Apache-2.0
#include "ethosn/stream/program_blob.hpp"

#include <algorithm>

#include "base/file.hpp"

namespace carina::ethosn {
namespace {

constexpr uint32_t kPartMagic = 0x504e4543;  // "CENP"
constexpr uint32_t kVersion = 1;

class PartReader {
 public:
  explicit PartReader(ByteSpan bytes) : bytes_(bytes) {}

  Error damaged(std::string_view what) const {
    return fail(Code::Damaged, "the NPU part of the program ends within {}", what)
        .at(fmt::format("offset {:#x}", offset_));
  }

  Result<uint32_t> word(std::string_view what) {
    if (bytes_.size() - offset_ < 4) return damaged(what);
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(bytes_[offset_ + i]) << (8 * i);
    offset_ += 4;
    return value;
  }

  Result<ByteSpan> sized(std::string_view what) {
    CARINA_TRY(const uint32_t size, word(what));
    if (size > bytes_.size() - offset_) return damaged(what);
    const ByteSpan part = bytes_.subspan(offset_, size);
    offset_ = std::min(bytes_.size(), offset_ + (size + size_t{3}) / 4 * 4);
    return part;
  }

  /// A permutation of 0, 1, ..., wanted - 1.
  Result<std::vector<uint32_t>> order(std::string_view what, size_t wanted) {
    CARINA_TRY(const uint32_t count, word(what));
    if (count != wanted) {
      return fail(Code::Damaged, "{} of the NPU part are {} in number, those of its compiled network {}",
                  what, count, wanted);
    }
    std::vector<uint32_t> out(count);
    std::vector<bool> seen(count, false);
    for (uint32_t& index : out) {
      CARINA_TRY(index, word(what));
      if (index >= count || seen[index])
        return fail(Code::Damaged, "{} of the NPU part are not a permutation", what);
      seen[index] = true;
    }
    return out;
  }

 private:
  ByteSpan bytes_;
  size_t offset_ = 0;
};

}  // namespace

std::vector<uint8_t> writeProgramBlob(const ProgramBlob& blob) {
  std::vector<uint8_t> out;
  const auto word = [&out](uint64_t value) {
    CARINA_CHECK(value <= 0xFFFFFFFFu, "sizes in the NPU part of a program fit 32 bits");
    for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<uint8_t>(value >> shift));
  };
  const auto sized = [&](const auto& bytes) {
    word(bytes.size());
    for (const auto byte : bytes) out.push_back(static_cast<uint8_t>(byte));
    out.resize((out.size() + 3) / 4 * 4);
  };
  const auto order = [&](const std::vector<uint32_t>& indices) {
    word(indices.size());
    for (uint32_t index : indices) word(index);
  };
  word(kPartMagic);
  word(kVersion);
  word(blob.sramBytes);
  sized(blob.target);
  sized(writeCompiledNetwork(blob.network));
  order(blob.inputs);
  order(blob.outputs);
  return out;
}

Result<ProgramBlob> readProgramBlob(ByteSpan bytes) {
  PartReader reader(bytes);
  CARINA_TRY(const uint32_t magic, reader.word("its marker"));
  if (magic != kPartMagic) return fail(Code::Damaged, "the NPU part does not begin with \"CENP\"");
  CARINA_TRY(const uint32_t version, reader.word("its version"));
  if (version != kVersion) {
    return fail(Code::UnknownVersion, "the NPU part has version {}, expected version {}", version, kVersion)
        .withRemedy("compile the network again");
  }
  ProgramBlob blob;
  CARINA_TRY(blob.sramBytes, reader.word("the size of the SRAM"));
  CARINA_TRY(const ByteSpan target, reader.sized("the name of its target"));
  blob.target = std::string(asText(target));
  CARINA_TRY(const ByteSpan network, reader.sized("its compiled network"));
  CARINA_TRY(blob.network, readCompiledNetwork(network));
  CARINA_RETURN_IF_ERROR(checkBuffers(blob.network));
  CARINA_TRY(blob.inputs, reader.order("the inputs", blob.network.inputs.size()));
  CARINA_TRY(blob.outputs, reader.order("the outputs", blob.network.outputs.size()));
  return blob;
}

}  // namespace carina::ethosn
