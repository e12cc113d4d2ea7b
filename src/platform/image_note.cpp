// SPDX-License-Identifier: Apache-2.0
#include "platform/image_note.hpp"

#include <cstring>
#include <string_view>

#include "platform/elf.hpp"

namespace carina::platform {
namespace {

constexpr std::string_view kOwner("Carina\0", 7);
constexpr size_t kHeaderBytes = 12, kOwnerBytes = 8;
constexpr uint32_t kType = 1;

uint32_t word(std::string_view bytes, size_t at) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

std::optional<ImageNote> parse(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes + kOwnerBytes || word(bytes, 0) != kOwner.size() ||
      word(bytes, 8) != kType || bytes.substr(kHeaderBytes, kOwner.size()) != kOwner) {
    return std::nullopt;
  }
  std::string_view rest = bytes.substr(kHeaderBytes + kOwnerBytes);
  if (word(bytes, 4) > rest.size()) return std::nullopt;
  rest = rest.substr(0, word(bytes, 4));
  ImageNote note;
  for (std::string* item : {&note.platform, &note.core, &note.target, &note.systemConfig, &note.memoryMode}) {
    const size_t end = rest.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    *item = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  if (const size_t end = rest.find('\0'); end != std::string_view::npos) note.memories = rest.substr(0, end);
  return note;
}

}  // namespace

std::optional<ImageNote> readImageNote(ByteSpan elf) {
  const auto image = readElf(elf);
  if (!image) return std::nullopt;
  for (const ElfImage::Section& section : image->sections) {
    if (section.name != ".note.carina" || section.offset > elf.size() ||
        section.size > elf.size() - section.offset)
      continue;
    return parse(std::string_view(reinterpret_cast<const char*>(elf.data()) + section.offset, section.size));
  }
  return std::nullopt;
}

}  // namespace carina::platform
