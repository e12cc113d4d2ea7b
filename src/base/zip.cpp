// SPDX-License-Identifier: Apache-2.0
#include "base/zip.hpp"

#include <minizip/ioapi.h>
#include <minizip/unzip.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_set>

namespace carina {
namespace {

// Reading ---------------------------------------------------------------------------------------------

/// What minizip sees as a file: bytes in memory and a position.
struct MemoryFile {
  ByteSpan bytes;
  uint64_t position = 0;
  bool failed = false;  // something was read past the end; minizip would take that for zeros
};

voidpf openMemory(voidpf opaque, const void*, int) {
  return opaque;
}

uLong readMemory(voidpf, voidpf stream, void* buffer, uLong size) {
  auto& file = *static_cast<MemoryFile*>(stream);
  const uint64_t n =
      std::min<uint64_t>(size, file.bytes.size() - std::min<uint64_t>(file.position, file.bytes.size()));
  if (n > 0) std::memcpy(buffer, file.bytes.data() + file.position, n);
  file.position += n;
  if (n < size) file.failed = true;
  return static_cast<uLong>(n);
}

uLong writeMemory(voidpf, voidpf, const void*, uLong) {
  return 0;
}

ZPOS64_T tellMemory(voidpf, voidpf stream) {
  return static_cast<MemoryFile*>(stream)->position;
}

long seekMemory(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  auto& file = *static_cast<MemoryFile*>(stream);
  const uint64_t base = origin == ZLIB_FILEFUNC_SEEK_END   ? file.bytes.size()
                        : origin == ZLIB_FILEFUNC_SEEK_CUR ? file.position
                                                           : 0;
  if (offset > file.bytes.size() || base > file.bytes.size() - offset) return -1;
  file.position = base + offset;
  return 0;
}

int closeMemory(voidpf, voidpf) {
  return 0;
}
int errorMemory(voidpf, voidpf stream) {
  return static_cast<MemoryFile*>(stream)->failed ? -1 : 0;
}

class Unzipper {
 public:
  explicit Unzipper(ByteSpan bytes) : file_{bytes} {
    zlib_filefunc64_def functions{openMemory, readMemory,  writeMemory, tellMemory,
                                  seekMemory, closeMemory, errorMemory, &file_};
    handle_ = unzOpen2_64("archive", &functions);
  }
  ~Unzipper() {
    if (handle_) unzClose(handle_);
  }
  Unzipper(const Unzipper&) = delete;
  Unzipper& operator=(const Unzipper&) = delete;
  unzFile get() const { return handle_; }

 private:
  MemoryFile file_;
  unzFile handle_ = nullptr;
};

constexpr size_t kMaxMembers = 1u << 20;

/// Entry at the reader's current position.
Result<ZipArchive::Member> currentMember(unzFile zip, uint64_t archiveSize) {
  unz_file_info64 info{};
  if (unzGetCurrentFileInfo64(zip, &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK) {
    return fail("the archive's directory is damaged");
  }
  std::string name(info.size_filename, '\0');
  if (unzGetCurrentFileInfo64(zip, &info, name.data(), static_cast<uLong>(name.size()), nullptr, 0, nullptr,
                              0) != UNZ_OK) {
    return fail("the archive's directory is damaged");
  }
  if (name.empty() || name.find('\0') != std::string::npos)
    return fail("a member of the archive has an impossible name");
  if ((info.flag & 1u) != 0) return fail("member '{}' is encrypted", name);
  if (info.compression_method != 0 && info.compression_method != Z_DEFLATED) {
    return fail("member '{}' uses compression method {}; only stored and deflated members can be read", name,
                info.compression_method);
  }
  int method = 0, level = 0;
  if (unzOpenCurrentFile2(zip, &method, &level, 1) != UNZ_OK) {
    return fail("the header of member '{}' is damaged or disagrees with the directory", name);
  }
  const uint64_t offset = unzGetCurrentFileZStreamPos64(zip);
  unzCloseCurrentFile(zip);
  if (offset > archiveSize || info.compressed_size > archiveSize - offset) {
    return fail("member '{}' reaches beyond the end of the archive", name);
  }
  ZipArchive::Member member{std::move(name), info.uncompressed_size,       info.compressed_size,
                            offset,          info.compression_method == 0, static_cast<uint32_t>(info.crc)};
  if (member.stored && member.size != member.compressedSize) {
    return fail("member '{}' is stored but has two sizes, {} and {}", member.name, member.size,
                member.compressedSize);
  }
  // Deflate cannot expand more than 1032 times, so a larger claim is a lie (and would only exhaust memory).
  if (!member.stored && member.size / 1032 > member.compressedSize + 1) {
    return fail("member '{}' claims {} bytes, more than its {} compressed bytes can hold", member.name,
                member.size, member.compressedSize);
  }
  return member;
}

Status checkOverlap(std::vector<const ZipArchive::Member*> byOffset) {
  std::sort(byOffset.begin(), byOffset.end(), [](auto* a, auto* b) { return a->dataOffset < b->dataOffset; });
  const ZipArchive::Member* previous = nullptr;
  for (const ZipArchive::Member* member : byOffset) {
    if (member->compressedSize == 0) continue;
    if (previous && previous->dataOffset + previous->compressedSize > member->dataOffset) {
      return fail("members '{}' and '{}' overlap", previous->name, member->name);
    }
    previous = member;
  }
  return {};
}

Status checkCrc(const ZipArchive::Member& member, ByteSpan contents) {
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION  // a fuzzer cannot guess checksums and would see nothing
                                                  // behind them
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(contents.data()), contents.size());
  if (crc != member.crc) {
    return fail("member '{}' is damaged: its checksum is {:08x}, the archive says {:08x}", member.name, crc,
                member.crc)
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
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return fail("cannot start zlib");
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
  if (state != Z_STREAM_END || produced != output.size()) return fail("its compressed bytes are damaged");
  return {};
}

}  // namespace

Result<ZipArchive> ZipArchive::open(ByteSpan bytes, std::shared_ptr<const void> owner) {
  ZipArchive archive;
  archive.bytes_ = bytes;
  archive.owner_ = std::move(owner);
  // An archive without members is an end record alone, which minizip does not look for at offset 0.
  static constexpr char kEmptyArchive[22] = {'P', 'K', 5, 6};
  if (bytes.size() == sizeof kEmptyArchive &&
      std::memcmp(bytes.data(), kEmptyArchive, sizeof kEmptyArchive) == 0) {
    return archive;
  }
  const Unzipper zip(bytes);
  if (!zip.get()) return fail("is not a zip archive, or its end is missing");
  unz_global_info64 global{};
  if (unzGetGlobalInfo64(zip.get(), &global) != UNZ_OK) return fail("the archive's directory is damaged");
  if (global.number_entry == 0) return fail("the archive's directory is damaged");
  std::unordered_set<std::string> names;
  int state = unzGoToFirstFile(zip.get());
  for (; state == UNZ_OK; state = unzGoToNextFile(zip.get())) {
    if (archive.members_.size() >= kMaxMembers)
      return fail("the archive has more than {} members", kMaxMembers);
    CARINA_TRY(Member member, currentMember(zip.get(), bytes.size()));
    if (!names.insert(member.name).second) return fail("the archive has two members named '{}'", member.name);
    archive.members_.push_back(std::move(member));
  }
  if (state != UNZ_END_OF_LIST_OF_FILE || archive.members_.size() != global.number_entry) {
    return fail("the archive's directory is damaged: {} of {} members can be read", archive.members_.size(),
                global.number_entry);
  }
  std::vector<const Member*> members;
  for (const Member& member : archive.members_) members.push_back(&member);
  CARINA_RETURN_IF_ERROR(checkOverlap(std::move(members)));
  return archive;
}

const ZipArchive::Member* ZipArchive::find(std::string_view name) const {
  const auto it =
      std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.name == name; });
  return it == members_.end() ? nullptr : &*it;
}

Result<ZipArchive::Contents> ZipArchive::read(const Member& member) const {
  const ByteSpan raw = bytes_.subspan(member.dataOffset, member.compressedSize);
  if (member.stored) {
    CARINA_RETURN_IF_ERROR(checkCrc(member, raw));
    return Contents{raw, owner_};
  }
  auto memory = std::make_shared<std::vector<std::byte>>(member.size);
  if (auto status = inflateInto(raw, *memory); !status) {
    return fail("member '{}' cannot be read: {}", member.name, status.error().message());
  }
  CARINA_RETURN_IF_ERROR(checkCrc(member, *memory));
  const ByteSpan bytes(*memory);
  return Contents{bytes, std::move(memory)};
}

// Writing ---------------------------------------------------------------------------------------------

namespace {

constexpr uint64_t kMax32 = 0xffffffffu;
constexpr uint16_t kPaddingId = 0x4246;  // "FB", the padding field that PyTorch's writer uses, too
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
  put32(out, value & kMax32);
  put32(out, value >> 32);
}

struct Entry {
  const std::string* name;
  uint64_t size, offset;
  uint32_t crc;
};

/// The part that local header and directory entry share: version needed ... name length.
void putCommon(std::string& out, const Entry& entry, bool zip64) {
  put16(out, zip64 ? 45 : 20);
  put16(out, 0x0800);  // names are UTF-8
  put16(out, 0);       // stored
  put16(out, 0);
  put16(out, 0x21);  // 1980-01-01: the same contents give the same bytes
  put32(out, entry.crc);
  put32(out, zip64 ? kMax32 : entry.size);
  put32(out, zip64 ? kMax32 : entry.size);
  put16(out, entry.name->size());
}

void putLocalHeader(std::string& out, const Entry& entry, size_t alignment) {
  const bool zip64 = entry.size >= kMax32;
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
  const bool zip64 = entry.size >= kMax32 || entry.offset >= kMax32;
  put32(out, 0x02014b50);
  put16(out, zip64 ? 45 : 20);
  putCommon(out, entry, zip64);
  put16(out, zip64 ? 28 : 0);
  put16(out, 0);  // comment
  put16(out, 0);  // disk
  put16(out, 0);
  put32(out, 0);
  put32(out, zip64 ? kMax32 : entry.offset);
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
  const bool zip64 = count >= 0xffff || directory >= kMax32 || size >= kMax32;
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
  put32(out, zip64 ? kMax32 : size);
  put32(out, zip64 ? kMax32 : directory);
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
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(contents.data()), contents.size());
    entries.push_back({&name, contents.size(), out.size(), static_cast<uint32_t>(crc)});
    putLocalHeader(out, entries.back(), alignment);
    out += contents;
  }
  const uint64_t directory = out.size();
  for (const Entry& entry : entries) putDirectoryEntry(out, entry);
  putEnd(out, directory, entries.size());
  return out;
}

}  // namespace carina
