// SPDX-License-Identifier: Apache-2.0
#include "base/zip_directory.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace carina {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr size_t kLocalHeaderSize = 30, kEntrySize = 46, kEndSize = 22, kEnd64Size = 56,
                 kEnd64LocatorSize = 20;
constexpr uint16_t kZip64Field = 0x0001;
constexpr uint16_t kStreamed = 1u << 3;  // sizes and checksum follow the data
constexpr uint64_t kMaxMembers = uint64_t{1} << 20;

Error damaged() {
  return fail(Code::Damaged, "the archive's directory is damaged");
}

/// Little-endian fields; reading out of bounds is a bug, so callers check has() first.
class Fields {
 public:
  explicit Fields(ByteSpan bytes) : bytes_(bytes) {}
  bool has(uint64_t at, uint64_t size) const { return at <= bytes_.size() && size <= bytes_.size() - at; }
  uint16_t u16(uint64_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  uint32_t u32(uint64_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  uint64_t u64(uint64_t at) const { return number(at, 8); }
  std::string_view text(uint64_t at, size_t size) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + at, size};
  }
  size_t size() const { return bytes_.size(); }

 private:
  uint64_t number(uint64_t at, size_t size) const {
    CARINA_CHECK(has(at, size), "zip field outside of the archive");
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes_[at + i]) << (8 * i);
    return value;
  }
  ByteSpan bytes_;
};

/// Location of the directory; `prefix` is the size of what precedes the archive, which no offset includes.
struct Directory {
  uint64_t begin = 0, end = 0, count = 0, prefix = 0;
};

/// The end record: the last one whose comment reaches exactly to the end of the file.
std::optional<uint64_t> findEnd(const Fields& file) {
  if (file.size() < kEndSize) return std::nullopt;
  constexpr uint64_t kMaxComment = 0xffff;
  const uint64_t last = file.size() - kEndSize;
  for (uint64_t back = 0; back <= std::min<uint64_t>(last, kMaxComment); ++back) {
    const uint64_t at = last - back;
    if (file.u32(at) == kEnd && file.u16(at + 20) == back) return at;
  }
  return std::nullopt;
}

Result<Directory> locate(const Fields& file) {
  const auto end = findEnd(file);
  if (!end) return fail(Code::WrongKind, "is not a zip archive, or its end is missing");
  uint64_t at = *end, size = file.u32(at + 12), offset = file.u32(at + 16);
  Directory directory;
  directory.count = file.u16(at + 10);
  bool oneDisk = file.u16(at + 4) == 0 && file.u16(at + 6) == 0 && file.u16(at + 8) == file.u16(at + 10);
  if (at >= kEnd64LocatorSize && file.u32(at - kEnd64LocatorSize) == kEnd64Locator) {
    const uint64_t record = file.u64(at - kEnd64LocatorSize + 8);
    if (!file.has(record, kEnd64Size) || file.u32(record) != kEnd64 || record > at - kEnd64LocatorSize)
      return damaged();
    at = record;
    directory.count = file.u64(at + 32);
    size = file.u64(at + 40);
    offset = file.u64(at + 48);
    oneDisk = file.u32(at + 16) == 0 && file.u32(at + 20) == 0 && file.u64(at + 24) == file.u64(at + 32);
  }
  if (!oneDisk) return fail(Code::UnknownVersion, "the archive is spread over several files");
  if (size > at || offset > at - size) return damaged();
  directory.begin = at - size;
  directory.end = at;
  directory.prefix = at - size - offset;
  return directory;
}

/// Sizes and offset of an entry, from its Zip64 field if they do not fit in 32 bits; `offset` is that of the
/// local header.
bool readZip64(const Fields& file, uint64_t extra, uint64_t extraSize, ZipEntry& entry, uint64_t& offset) {
  uint64_t* const wanted[] = {entry.size == kInZip64 ? &entry.size : nullptr,
                              entry.compressedSize == kInZip64 ? &entry.compressedSize : nullptr,
                              offset == kInZip64 ? &offset : nullptr};
  for (uint64_t at = extra; extraSize - (at - extra) >= 4;) {
    const uint64_t id = file.u16(at), length = file.u16(at + 2);
    at += 4;
    if (length > extraSize - (at - extra)) return false;
    const uint64_t next = at + length;
    if (id == kZip64Field) {
      for (uint64_t* value : wanted) {
        if (!value) continue;
        if (next - at < 8) return false;
        *value = file.u64(at);
        at += 8;
      }
      return true;
    }
    at = next;
  }
  return true;  // a member of exactly 4 GiB - 1 has no such field
}

/// Checks the local header at `at` and sets the offset of the data.
Status readLocalHeader(const Fields& file, uint64_t at, ZipEntry& entry) {
  const auto disagrees = [&] {
    return fail(Code::Damaged, "the header of member '{}' is damaged or disagrees with the directory",
                entry.name);
  };
  if (!file.has(at, kLocalHeaderSize) || file.u32(at) != kLocalHeader) return disagrees();
  const uint64_t nameSize = file.u16(at + 26), extraSize = file.u16(at + 28);
  if (file.u16(at + 8) != entry.method || nameSize != entry.name.size()) return disagrees();
  const bool streamed = (file.u16(at + 6) & kStreamed) != 0;
  const uint32_t compressed = file.u32(at + 18), size = file.u32(at + 22);
  const bool sizesAgree = (compressed == entry.compressedSize || compressed == kInZip64) &&
                          (size == entry.size || size == kInZip64) && file.u32(at + 14) == entry.crc;
  if (!streamed && !sizesAgree) return disagrees();
  entry.dataOffset = at + kLocalHeaderSize + nameSize + extraSize;
  if (!file.has(entry.dataOffset, entry.compressedSize))
    return fail(Code::Damaged, "member '{}' reaches beyond the end of the archive", entry.name);
  return {};
}

}  // namespace

Result<std::vector<ZipEntry>> readZipDirectory(ByteSpan archive) {
  const Fields file(archive);
  CARINA_TRY(const Directory directory, locate(file));
  if (directory.count > kMaxMembers)
    return fail(Code::Excessive, "the archive has more than {} members", kMaxMembers);
  std::vector<ZipEntry> entries;
  uint64_t at = directory.begin;
  while (entries.size() < directory.count) {
    if (directory.end - at < kEntrySize || file.u32(at) != kDirectoryEntry) break;
    const uint64_t nameSize = file.u16(at + 28), extraSize = file.u16(at + 30),
                   commentSize = file.u16(at + 32);
    if (directory.end - at - kEntrySize < nameSize + extraSize + commentSize) break;
    ZipEntry entry;
    entry.flags = file.u16(at + 8);
    entry.method = file.u16(at + 10);
    entry.crc = file.u32(at + 16);
    entry.compressedSize = file.u32(at + 20);
    entry.size = file.u32(at + 24);
    uint64_t offset = file.u32(at + 42);
    at += kEntrySize;
    entry.name = file.text(at, nameSize);
    if (!readZip64(file, at + nameSize, extraSize, entry, offset) || offset > archive.size())
      return damaged();
    at += nameSize + extraSize + commentSize;
    CARINA_RETURN_IF_ERROR(readLocalHeader(file, directory.prefix + offset, entry));
    entries.push_back(std::move(entry));
  }
  if (entries.size() != directory.count || at != directory.end) {
    return fail(Code::Damaged, "the archive's directory is damaged: {} of {} members can be read",
                entries.size(), directory.count);
  }
  return entries;
}

}  // namespace carina
