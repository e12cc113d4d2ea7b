// SPDX-License-Identifier: Apache-2.0
#include "platform/elf.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/file.hpp"

namespace carina::platform {
namespace {

// Offsets in the headers of ELF32.
constexpr size_t kHeaderSize = 52, kProgramHeaderSize = 32, kSectionHeaderSize = 40, kSymbolSize = 16;
constexpr uint32_t kLoad = 1;                                                // p_type
constexpr uint32_t kSymbolTable = 2, kNoBits = 8, kAttributes = 0x70000003;  // sh_type
constexpr uint16_t kExecutable = 2, kArm = 40;

/// Little-endian numbers at checked offsets.
class Reader {
 public:
  explicit Reader(ByteSpan bytes) : bytes_(bytes) {}
  size_t size() const { return bytes_.size(); }
  bool has(uint64_t offset, uint64_t length) const { return offset <= size() && length <= size() - offset; }
  uint16_t u16(size_t offset) const { return static_cast<uint16_t>(number(offset, 2)); }
  uint32_t u32(size_t offset) const { return number(offset, 4); }
  ByteSpan part(uint64_t offset, uint64_t length) const { return bytes_.subspan(offset, length); }

 private:
  uint32_t number(size_t offset, size_t width) const {
    CARINA_CHECK(has(offset, width), "the caller has checked the range");
    uint32_t value = 0;
    for (size_t i = 0; i < width; ++i) value |= std::to_integer<uint32_t>(bytes_[offset + i]) << 8 * i;
    return value;
  }
  ByteSpan bytes_;
};

/// Longer names of symbols and sections are dropped: any number of them could refer to one long text.
constexpr size_t kMaxSymbolName = 4096;

/// Text up to the NUL at `offset` of a string table; empty when there is none.
std::string_view stringAt(ByteSpan table, size_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = asText(table.subspan(offset)).substr(0, kMaxSymbolName);
  const size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view{} : rest.substr(0, end);
}

Status readSegments(const Reader& file, ElfImage& image) {
  const uint32_t table = file.u32(28);
  const uint16_t entrySize = file.u16(42), count = file.u16(44);
  if (count == 0)
    return fail(Code::InvalidImage, "it has no program headers: nothing to load")
        .withRemedy("link it into an executable first");
  if (entrySize < kProgramHeaderSize || !file.has(table, uint64_t{entrySize} * count))
    return fail(Code::InvalidImage, "the program headers lie outside the file");
  for (uint32_t i = 0; i < count; ++i) {
    const size_t at = table + size_t{entrySize} * i;
    const uint32_t offset = file.u32(at + 4), address = file.u32(at + 12), size = file.u32(at + 16);
    if (file.u32(at) != kLoad || size == 0) continue;
    if (!file.has(offset, size))
      return fail(Code::InvalidImage, "its bytes lie outside the file").at(fmt::format("segment {}", i));
    if (uint64_t{address} + size > uint64_t{1} << 32)
      return fail(Code::InvalidImage, "it extends beyond the end of the address space")
          .at(fmt::format("segment {}", i));
    image.segments.push_back({address, file.part(offset, size), offset});
  }
  if (image.segments.empty()) return fail(Code::InvalidImage, "there is no segment to load");
  return {};
}

// --- build attributes (Addenda to the Arm ABI, section 3)

class AttributeReader {
 public:
  explicit AttributeReader(ByteSpan bytes) : bytes_(bytes) {}
  bool atEnd() const { return at_ >= bytes_.size(); }
  uint64_t uleb() {
    uint64_t value = 0;
    for (int shift = 0; !atEnd(); shift += 7) {
      const auto byte = std::to_integer<uint64_t>(bytes_[at_++]);
      if (shift < 63) value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  std::string_view text() {
    const std::string_view found = stringAt(bytes_, at_);
    at_ = std::min(bytes_.size(), at_ + found.size() + 1);
    return found;
  }
  uint32_t u32() {
    uint32_t value = 0;
    for (int i = 0; i < 4 && !atEnd(); ++i) value |= std::to_integer<uint32_t>(bytes_[at_++]) << 8 * i;
    return value;
  }
  /// Returns the part of `length` bytes counted from `start`, and advances to what follows it.
  AttributeReader part(size_t start, uint64_t length) {
    const size_t end = length > bytes_.size() - start ? bytes_.size() : start + static_cast<size_t>(length);
    const size_t from = std::min(at_, end);
    at_ = std::max(end, at_);
    return AttributeReader(bytes_.subspan(from, end - from));
  }
  size_t position() const { return at_; }
  void skip(size_t count) { at_ = std::min(bytes_.size(), at_ + count); }

 private:
  ByteSpan bytes_;
  size_t at_ = 0;
};

void readFileAttributes(AttributeReader reader, ArmAttributes& attributes) {
  while (!reader.atEnd()) {
    const uint64_t tag = reader.uleb();
    if (tag == 5) {
      attributes.cpuName = reader.text();
    } else if (tag == 4 || (tag > 32 && tag % 2 == 1)) {
      reader.text();
    } else if (tag == 32) {
      reader.uleb();
      reader.text();
    } else {
      const auto value = static_cast<uint32_t>(reader.uleb());
      if (tag == 6) attributes.cpuArch = value;
      if (tag == 7) attributes.profile = value;
      if (tag == 10) attributes.fpArch = value;
      if (tag == 27) attributes.hardFpUse = value;
      if (tag == 48) attributes.mveArch = value;
    }
  }
}

ArmAttributes readAttributes(ByteSpan section) {
  ArmAttributes attributes;
  AttributeReader all(section);
  if (section.empty() || section[0] != std::byte{'A'}) return attributes;
  all.skip(1);
  while (!all.atEnd()) {
    const size_t start = all.position();
    const uint32_t length = all.u32();
    if (length < 4) break;
    AttributeReader vendor = all.part(start, length);
    if (vendor.text() != "aeabi") continue;
    while (!vendor.atEnd()) {
      const size_t begin = vendor.position();
      const uint64_t scope = vendor.uleb();
      const uint32_t size = vendor.u32();
      if (size < 5) break;
      const AttributeReader part = vendor.part(begin, size);
      if (scope == 1) readFileAttributes(part, attributes);
    }
  }
  return attributes;
}

// --- sections: optional; what exceeds the file is left out

void readSymbols(ByteSpan table, ByteSpan names, ElfImage& image) {
  const Reader symbols(table);
  for (size_t at = 0; symbols.has(at, kSymbolSize); at += kSymbolSize) {
    const uint32_t info = std::to_integer<uint32_t>(table[at + 12]) & 0xf;
    constexpr uint32_t kObject = 1, kFunction = 2;
    if (info != kObject && info != kFunction) continue;
    const std::string_view name = stringAt(names, symbols.u32(at));
    if (name.empty()) continue;
    const uint32_t address = symbols.u32(at + 4), size = symbols.u32(at + 8);
    if (info == kFunction)
      image.functions.push_back({address & ~1u, size, name});
    else
      image.objects.push_back({address, size, name});
  }
  std::stable_sort(image.functions.begin(), image.functions.end(),
                   [](const auto& a, const auto& b) { return a.address < b.address; });
}

void readSections(const Reader& file, ElfImage& image) {
  const uint32_t table = file.u32(32);
  const uint16_t entrySize = file.u16(46), count = file.u16(48), namesIndex = file.u16(50);
  if (entrySize < kSectionHeaderSize || !file.has(table, uint64_t{entrySize} * count)) return;
  const auto header = [&](uint32_t i, size_t field) {
    return file.u32(table + size_t{entrySize} * i + field);
  };
  const auto contents = [&](uint32_t i) -> ByteSpan {
    if (i >= count || header(i, 4) == kNoBits || !file.has(header(i, 16), header(i, 20))) return {};
    return file.part(header(i, 16), header(i, 20));
  };
  const ByteSpan names = contents(namesIndex);
  bool hasAttributes = false, hasSymbols = false;
  for (uint32_t i = 0; i < count; ++i) {
    image.sections.push_back({stringAt(names, header(i, 0)), header(i, 12), header(i, 16), header(i, 20)});
    // Linkers write one of each; otherwise, a thousand sections could share the bytes of one.
    if (header(i, 4) == kAttributes && !std::exchange(hasAttributes, true))
      image.attributes = readAttributes(contents(i));
    if (header(i, 4) == kSymbolTable && !std::exchange(hasSymbols, true))
      readSymbols(contents(i), contents(header(i, 24)), image);
  }
}

}  // namespace

Result<ElfImage> readElf(ByteSpan bytes) {
  const Reader file(bytes);
  if (bytes.size() < 4 || std::memcmp(bytes.data(), "\177ELF", 4) != 0)
    return fail(Code::InvalidImage, "not an ELF file");
  if (bytes.size() < kHeaderSize) return fail(Code::InvalidImage, "the file is cut off in its header");
  if (bytes[4] != std::byte{1} || bytes[5] != std::byte{1} || file.u16(18) != kArm)
    return fail(Code::InvalidImage, "not a program for 32-bit little-endian Arm")
        .withRemedy("build it with arm-none-eabi-gcc -mcpu=cortex-m33");
  if (file.u16(16) != kExecutable)
    return fail(Code::InvalidImage, "not an executable").withRemedy("link it first");
  ElfImage image;
  image.entry = file.u32(24);
  CARINA_RETURN_IF_ERROR(readSegments(file, image));
  readSections(file, image);
  return image;
}

std::string ElfImage::nameOf(uint32_t address) const {
  auto at = std::upper_bound(functions.begin(), functions.end(), address,
                             [](uint32_t a, const Symbol& symbol) { return a < symbol.address; });
  if (at == functions.begin()) return {};
  --at;
  if (at->size != 0 && address - at->address >= at->size) return {};
  return address == at->address ? std::string(at->name)
                                : fmt::format("{}+0x{:x}", at->name, address - at->address);
}

std::optional<uint32_t> ElfImage::fileOffsetOf(std::string_view object) const {
  for (const Symbol& symbol : objects) {
    if (symbol.name != object) continue;
    for (const ElfSegment& segment : segments) {
      const uint64_t from = uint64_t{symbol.address} - segment.address;
      if (symbol.address < segment.address || from + symbol.size > segment.bytes.size()) continue;
      return segment.offset + static_cast<uint32_t>(from);
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> ElfImage::loadAddressOf(std::string_view name) const {
  for (const Section& section : sections) {
    if (section.name != name) continue;
    for (const ElfSegment& segment : segments) {
      if (section.offset < segment.offset || section.offset - segment.offset >= segment.bytes.size())
        continue;
      return segment.address + (section.offset - segment.offset);
    }
  }
  return std::nullopt;
}

Status checkForCortexM(const ArmAttributes& attributes) {
  const std::string built =
      attributes.cpuName.empty() ? "" : fmt::format(" (built for {})", attributes.cpuName);
  // 11 v6-M, 12 v6S-M, 10 v7, 13 v7E-M, 16 v8-M.base, 17 v8-M.main, 21 v8.1-M.main
  constexpr uint32_t kKnown[] = {10, 11, 12, 13, 16, 17, 21};
  const uint32_t arch = attributes.cpuArch.value_or(17);
  const bool known = std::find(std::begin(kKnown), std::end(kKnown), arch) != std::end(kKnown);
  if (attributes.profile.value_or('M') != 'M' || !known)
    return fail(Code::InvalidImage,
                "it is built for an architecture that no Cortex-M implements (Tag_CPU_arch {}){}", arch,
                built)
        .withRemedy("build it with -mcpu=cortex-m33, cortex-m55 or cortex-m85");
  return {};
}

}  // namespace carina::platform
