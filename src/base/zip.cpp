// SPDX-License-Identifier: Apache-2.0
#include "base/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/crc32.hpp"
#include "base/zip_directory.hpp"

namespace carina {
namespace {

// Reading ---------------------------------------------------------------------------------------------

constexpr uint64_t kInflationBase = uint64_t{64} << 20, kInflationFactor = 64;

Result<ZipArchive::Member> memberOf(ZipEntry entry) {
  const std::string& name = entry.name;
  if (name.empty() || name.find('\0') != std::string::npos)
    return fail(Code::Damaged, "a member of the archive has an impossible name");
  if ((entry.flags & 1u) != 0) return fail(Code::UnknownVersion, "member '{}' is encrypted", name);
  if (entry.method != 0 && entry.method != Z_DEFLATED) {
    return fail(Code::UnknownVersion,
                "member '{}' uses compression method {}; only stored and deflated members can be read", name,
                entry.method);
  }
  const bool stored = entry.method == 0;
  if (stored && entry.size != entry.compressedSize) {
    return fail(Code::Damaged, "member '{}' is stored but has two sizes, {} and {}", name, entry.size,
                entry.compressedSize);
  }
  // Deflate cannot expand more than 1032 times, so a larger claim is false (and would only exhaust memory).
  if (!stored && entry.size / 1032 > entry.compressedSize + 1) {
    return fail(Code::Excessive, "member '{}' claims {} bytes, more than its {} compressed bytes can hold",
                name, entry.size, entry.compressedSize);
  }
  return ZipArchive::Member{std::move(entry.name), entry.size, entry.compressedSize,
                            entry.dataOffset,      stored,     entry.crc};
}

Status checkOverlap(std::vector<const ZipArchive::Member*> byOffset) {
  std::sort(byOffset.begin(), byOffset.end(), [](auto* a, auto* b) { return a->dataOffset < b->dataOffset; });
  const ZipArchive::Member* previous = nullptr;
  for (const ZipArchive::Member* member : byOffset) {
    if (member->compressedSize == 0) continue;
    if (previous && previous->dataOffset + previous->compressedSize > member->dataOffset) {
      return fail(Code::Damaged, "members '{}' and '{}' overlap", previous->name, member->name);
    }
    previous = member;
  }
  return {};
}

Status checkCrc(const ZipArchive::Member& member, ByteSpan contents) {
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION  // a fuzzer cannot guess checksums to get past them
  const uint32_t crc = crc32Of(contents);
  if (crc != member.crc) {
    return fail(Code::Damaged, "member '{}' is damaged: its checksum is {:08x}, the archive says {:08x}",
                member.name, crc, member.crc)
        .withRemedy("Copy or download the file again.");
  }
#else
  static_cast<void>(member);
  static_cast<void>(contents);
#endif
  return {};
}

Status inflateInto(ByteSpan input, std::span<std::byte> output) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return fail(Code::ToolFailed, "cannot start zlib");
  size_t consumed = 0, produced = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    constexpr size_t kMaxChunk = std::numeric_limits<uInt>::max();
    const auto in = static_cast<uInt>(std::min(kMaxChunk, input.size() - consumed));
    const auto out = static_cast<uInt>(std::min(kMaxChunk, output.size() - produced));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input.data() + consumed));
    stream.avail_in = in;
    stream.next_out = reinterpret_cast<Bytef*>(output.data() + produced);
    stream.avail_out = out;
    state = inflate(&stream, Z_NO_FLUSH);
    consumed += in - stream.avail_in;
    produced += out - stream.avail_out;
    if (state == Z_OK && in == stream.avail_in && out == stream.avail_out)
      state = Z_BUF_ERROR;  // no progress
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || produced != output.size())
    return fail(Code::Damaged, "its compressed bytes are damaged");
  return {};
}

}  // namespace

Result<ZipArchive> ZipArchive::open(ByteSpan bytes, std::shared_ptr<const void> owner,
                                    std::shared_ptr<Budget> inflation) {
  ZipArchive archive;
  archive.bytes_ = bytes;
  archive.owner_ = std::move(owner);
  archive.inflation_ =
      inflation ? std::move(inflation)
                : std::make_shared<Budget>(Budget::ofFile(bytes.size(), kInflationBase, kInflationFactor));
  CARINA_TRY(std::vector<ZipEntry> entries, readZipDirectory(bytes));
  for (ZipEntry& entry : entries) {
    CARINA_TRY(Member member, memberOf(std::move(entry)));
    if (!archive.index_.emplace(member.name, archive.members_.size()).second)
      return fail(Code::Damaged, "the archive has two members named '{}'", member.name);
    archive.members_.push_back(std::move(member));
  }
  std::vector<const Member*> members;
  for (const Member& member : archive.members_) members.push_back(&member);
  CARINA_RETURN_IF_ERROR(checkOverlap(std::move(members)));
  return archive;
}

const ZipArchive::Member* ZipArchive::find(std::string_view name) const {
  const auto it = index_.find(std::string(name));
  return it == index_.end() ? nullptr : &members_[it->second];
}

Result<ZipArchive::Contents> ZipArchive::read(const Member& member) const {
  const ByteSpan raw = bytes_.subspan(member.dataOffset, member.compressedSize);
  if (member.stored) {
    CARINA_RETURN_IF_ERROR(checkCrc(member, raw));
    return Contents{raw, owner_};
  }
  if (!inflation_->take(member.size)) {
    return fail(Code::Excessive, "member '{}' inflates to {} bytes, more than an archive of this size may",
                member.name, member.size)
        .withRemedy("Write the archive again with members that are stored, not compressed.");
  }
  auto memory = std::make_shared<std::vector<std::byte>>(member.size);
  if (auto status = inflateInto(raw, *memory); !status) {
    return fail(Code::Damaged, "member '{}' cannot be read: {}", member.name, status.error().message());
  }
  CARINA_RETURN_IF_ERROR(checkCrc(member, *memory));
  const ByteSpan bytes(*memory);
  return Contents{bytes, std::move(memory)};
}

// Writing ---------------------------------------------------------------------------------------------

namespace {

constexpr uint16_t kPaddingId = 0x4246;  // "FB", the padding field that PyTorch's writer also uses
constexpr uint16_t kZip64Id = 0x0001;

void put16(std::string& out, uint64_t value) {
  out += static_cast<char>(value & 0xffu);
  out += static_cast<char>((value >> 8) & 0xffu);
}
void put32(std::string& out, uint64_t value) {
  put16(out, value & 0xffffu);
  put16(out, value >> 16);
}
void put64(std::string& out, uint64_t value) {
  put32(out, value & kInZip64);
  put32(out, value >> 32);
}

struct Entry {
  const std::string* name;
  uint64_t size, offset;
  uint32_t crc;
};

/// The part common to local header and directory entry: version needed ... name length.
void putCommon(std::string& out, const Entry& entry, bool zip64) {
  put16(out, zip64 ? 45 : 20);
  put16(out, 0x0800);  // names are UTF-8
  put16(out, 0);       // stored
  put16(out, 0);
  put16(out, 0x21);  // 1980-01-01: output depends on contents only
  put32(out, entry.crc);
  put32(out, zip64 ? kInZip64 : entry.size);
  put32(out, zip64 ? kInZip64 : entry.size);
  put16(out, entry.name->size());
}

void putLocalHeader(std::string& out, const Entry& entry, size_t alignment) {
  const bool zip64 = entry.size >= kInZip64;
  put32(out, 0x04034b50);
  putCommon(out, entry, zip64);
  const size_t fixedExtra = zip64 ? 20 : 0;
  const size_t end = out.size() + 2 + entry.name->size() + fixedExtra;
  size_t padding = alignment > 1 && entry.size > 0 ? (alignment - end % alignment) % alignment : 0;
  while (padding != 0 && padding < 4) padding += alignment;  // the field's own header takes four bytes
  put16(out, fixedExtra + padding);
  out += *entry.name;
  if (zip64) {
    put16(out, kZip64Id);
    put16(out, 16);
    put64(out, entry.size);
    put64(out, entry.size);
  }
  if (padding) {
    put16(out, kPaddingId);
    put16(out, padding - 4);
    out.append(padding - 4, 'Z');
  }
}

void putDirectoryEntry(std::string& out, const Entry& entry) {
  const bool zip64 = entry.size >= kInZip64 || entry.offset >= kInZip64;
  put32(out, 0x02014b50);
  put16(out, zip64 ? 45 : 20);
  putCommon(out, entry, zip64);
  put16(out, zip64 ? 28 : 0);
  put16(out, 0);  // comment
  put16(out, 0);  // disk
  put16(out, 0);
  put32(out, 0);
  put32(out, zip64 ? kInZip64 : entry.offset);
  out += *entry.name;
  if (zip64) {
    put16(out, kZip64Id);
    put16(out, 24);
    put64(out, entry.size);
    put64(out, entry.size);
    put64(out, entry.offset);
  }
}

void putEnd(std::string& out, uint64_t directory, uint64_t count) {
  const uint64_t size = out.size() - directory;
  const bool zip64 = count >= 0xffff || directory >= kInZip64 || size >= kInZip64;
  if (zip64) {
    const uint64_t at = out.size();
    put32(out, 0x06064b50);
    put64(out, 44);
    put16(out, 45);
    put16(out, 45);
    put32(out, 0);
    put32(out, 0);
    put64(out, count);
    put64(out, count);
    put64(out, size);
    put64(out, directory);
    put32(out, 0x07064b50);
    put32(out, 0);
    put64(out, at);
    put32(out, 1);
  }
  put32(out, 0x06054b50);
  put16(out, 0);
  put16(out, 0);
  put16(out, zip64 ? 0xffff : count);
  put16(out, zip64 ? 0xffff : count);
  put32(out, zip64 ? kInZip64 : size);
  put32(out, zip64 ? kInZip64 : directory);
  put16(out, 0);
}

}  // namespace

std::string writeZip(std::span<const std::pair<std::string, std::string>> members, size_t alignment) {
  CARINA_CHECK(alignment <= 16384, "alignment does not fit an extra field");
  std::string out;
  std::vector<Entry> entries;
  entries.reserve(members.size());
  for (const auto& [name, contents] : members) {
    CARINA_CHECK(!name.empty() && name.size() < 0xffff, "impossible member name");
    entries.push_back({&name, contents.size(), out.size(), crc32Of(std::as_bytes(std::span(contents)))});
    putLocalHeader(out, entries.back(), alignment);
    out += contents;
  }
  const uint64_t directory = out.size();
  for (const Entry& entry : entries) putDirectoryEntry(out, entry);
  putEnd(out, directory, entries.size());
  return out;
}

}  // namespace carina
