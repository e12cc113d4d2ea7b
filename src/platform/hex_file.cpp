// SPDX-License-Identifier: Apache-2.0
// Source: "Hexadecimal Object File Format Specification", Intel, 1988. A record: ':', the number of data
// bytes, a 16-bit address, a type, the data, and a checksum that makes the sum of all bytes 0.
#include "platform/hex_file.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/file.hpp"

namespace carina::platform {
namespace {

enum Type : uint32_t {
  kDataRecord,
  kEndRecord,
  kSegmentBaseRecord,
  kSegmentStartRecord,
  kLinearBaseRecord,
  kLinearStartRecord
};
constexpr size_t kRecordHead = 4;  // bytes before the data
constexpr size_t kMaxRecordBytes = kRecordHead + 255 + 1;

std::optional<uint32_t> digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0');
  if (c >= 'A' && c <= 'F') return static_cast<uint32_t>(c - 'A' + 10);
  if (c >= 'a' && c <= 'f') return static_cast<uint32_t>(c - 'a' + 10);
  return std::nullopt;
}

struct Record {
  std::array<uint8_t, kMaxRecordBytes> bytes{};
  size_t size = 0;  // of its data
  uint32_t type() const { return bytes[3]; }
  uint32_t address() const { return uint32_t{bytes[1]} << 8 | bytes[2]; }
  /// Data as a big-endian number.
  uint32_t number() const {
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | bytes[kRecordHead + i];
    return value;
  }
};

/// Parses a line; returns what is wrong with it, or null.
const char* parse(std::string_view line, Record& record) {
  if (line.empty() || line[0] != ':') return "does not begin with ':'";
  line.remove_prefix(1);
  if (line.size() % 2 != 0 || line.size() / 2 > kMaxRecordBytes || line.size() / 2 < kRecordHead + 1)
    return "does not have the length of a record";
  uint32_t sum = 0;
  for (size_t i = 0; i < line.size() / 2; ++i) {
    const auto high = digit(line[2 * i]), low = digit(line[2 * i + 1]);
    if (!high || !low) return "has a character that is not a hexadecimal digit";
    record.bytes[i] = static_cast<uint8_t>(*high << 4 | *low);
    sum += record.bytes[i];
  }
  record.size = record.bytes[0];
  if (line.size() / 2 != kRecordHead + record.size + 1) return "does not have the length that it states";
  if ((sum & 0xff) != 0) return "has a wrong checksum";
  const uint32_t type = record.type();
  const size_t wanted = type == kSegmentBaseRecord || type == kLinearBaseRecord     ? 2
                        : type == kSegmentStartRecord || type == kLinearStartRecord ? 4
                                                                                    : record.size;
  if (type > kLinearStartRecord || record.size != wanted) return "has an unknown type";
  return nullptr;
}

void addData(HexFile& file, uint32_t address, const Record& record) {
  const auto* first = reinterpret_cast<const std::byte*>(record.bytes.data() + kRecordHead);
  if (file.runs.empty() || file.runs.back().address + file.runs.back().bytes.size() != address)
    file.runs.push_back({address, {}});
  auto& bytes = file.runs.back().bytes;
  bytes.insert(bytes.end(), first, first + record.size);
}

}  // namespace

bool isHexFile(ByteSpan bytes) {
  return !bytes.empty() && bytes[0] == std::byte{':'};
}

Result<HexFile> readHexFile(ByteSpan bytes) {
  std::string_view text = asText(bytes);
  HexFile file;
  uint32_t base = 0;
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty()) continue;
    Record record;
    if (const char* const wrong = parse(line, record))
      return fail(Code::Damaged, "a line in Intel HEX format {}", wrong)
          .at(fmt::format("line {}", number))
          .withRemedy("create the file again");
    switch (record.type()) {
      case kDataRecord:
        if (record.size != 0) addData(file, base + record.address(), record);
        break;
      case kEndRecord:
        return file;
      case kSegmentBaseRecord:
        base = record.number() << 4;
        break;
      case kLinearBaseRecord:
        base = record.number() << 16;
        break;
      case kLinearStartRecord:
        file.entry = record.number();
        break;
      default:  // start address of a segmented processor
        break;
    }
  }
  return fail(Code::Damaged, "the file has no end record")
      .withRemedy("create the file again, or copy it again");
}

ElfImage imageOf(const HexFile& file) {
  ElfImage image;
  image.entry = file.entry.value_or(0);
  for (const HexFile::Run& run : file.runs) image.segments.push_back({run.address, run.bytes, 0});
  return image;
}

}  // namespace carina::platform
