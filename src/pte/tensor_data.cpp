// SPDX-License-Identifier: Apache-2.0
#include "pte/tensor_data.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "pte/flat_bytes.hpp"
#include "pte/schema.hpp"

namespace carina::pte {
namespace {

namespace data = fb::data;
using flatbuffers::Offset;

constexpr char kDataIdentifier[] = "FT01";
// The header after the identifier: magic, its length, then four u64.
constexpr char kMagic[] = "FH01";
constexpr size_t kHeaderAt = 8, kHeaderBytes = 40, kPaddedHeaderBytes = 48;
constexpr size_t kLengthAt = 12, kBodyAt = 16, kBodyBytesAt = 24, kBaseAt = 32, kSegmentBytesAt = 40;

template <typename T>
void put(std::string& file, size_t offset, T value) {
  std::memcpy(file.data() + offset, &value, sizeof(T));
}

struct Header {
  uint64_t bodyEnd = 0, base = 0, segmentBytes = 0;
};

Result<Header> readHeader(ByteSpan file) {
  if (file.size() < 8 || asText(file.subspan(4, 4)) != kDataIdentifier)
    return fail(Code::WrongKind, "not a tensor data file: the identifier FT01 is missing");
  if (file.size() < kHeaderAt + kHeaderBytes || asText(file.subspan(kHeaderAt, 4)) != kMagic)
    return fail(Code::Damaged, "the header FH01 is missing").at("byte 8");
  const auto length = loadAt<uint32_t>(file, kLengthAt);
  if (length < kHeaderBytes)
    return fail(Code::Damaged, "the header of {} bytes is too short", length).at("byte 12");
  const auto start = loadAt<uint64_t>(file, kBodyAt), bytes = loadAt<uint64_t>(file, kBodyBytesAt);
  Header header;
  header.base = loadAt<uint64_t>(file, kBaseAt);
  header.segmentBytes = loadAt<uint64_t>(file, kSegmentBytesAt);
  if (start > file.size() || bytes > file.size() - start) {
    return fail(Code::Damaged, "truncated: the flatbuffer has {} bytes at {}, the file {}", bytes, start,
                file.size())
        .at("byte 16");
  }
  header.bodyEnd = start + bytes;
  if (header.base > file.size() || header.segmentBytes > file.size() - header.base) {
    return fail(Code::Damaged, "truncated: {} bytes of segments at {}, the file has {}", header.segmentBytes,
                header.base, file.size())
        .at("byte 32");
  }
  return header;
}

Result<DataEntry> readEntry(ByteSpan segments, const data::DataRoot& root, const data::DataEntry& from,
                            Copier& copy) {
  CARINA_RETURN_IF_ERROR(copy.room<DataEntry>());
  DataEntry entry;
  entry.key = copy.text(from.key());
  CARINA_RETURN_IF_ERROR(copy.status());
  if (entry.key.empty()) return fail(Code::Damaged, "the key is missing");
  if (root.segments() == nullptr || from.segment() >= root.segments()->size())
    return fail(Code::Damaged, "names segment {}, which does not exist", from.segment());
  const data::DataSegment* segment = root.segments()->Get(from.segment());
  if (segment->offset() > segments.size() || segment->size() > segments.size() - segment->offset()) {
    return fail(Code::Damaged, "segment {} ({} bytes at {}) reaches beyond the {} bytes of segments",
                from.segment(), segment->size(), segment->offset(), segments.size());
  }
  entry.bytes = copy.bytes(segments.subspan(segment->offset(), segment->size()));
  CARINA_RETURN_IF_ERROR(copy.status());
  if (from.layout() == nullptr) return entry;
  entry.layout = TensorLayout{static_cast<ScalarType>(from.layout()->scalar_type()),
                              copy.vector(from.layout()->sizes()), copy.vector(from.layout()->dim_order())};
  CARINA_RETURN_IF_ERROR(copy.status());
  return entry;
}

Status verify(const DataEntry& entry) {
  if (entry.key.empty()) return fail(Code::Damaged, "the key is missing");
  if (!entry.layout) return {};
  Tensor tensor;
  tensor.type = entry.layout->type;
  tensor.sizes = entry.layout->sizes;
  const auto bytes = tensorBytes(tensor);
  if (!bytes || static_cast<uint64_t>(*bytes) > entry.bytes.size()) {
    return fail(Code::Damaged, "{} does not fit its {} bytes", tensor.str(), entry.bytes.size());
  }
  if (entry.layout->dimOrder.size() != entry.layout->sizes.size())
    return fail(Code::Damaged, "{} has {} entries in its dimension order", tensor.str(),
                entry.layout->dimOrder.size());
  return {};
}

Status verify(const TensorData& from) {
  std::set<std::string_view> keys;
  for (size_t i = 0; i < from.entries.size(); ++i) {
    Status status = verify(from.entries[i]);
    if (status.ok() && !keys.insert(from.entries[i].key).second)
      status = fail(Code::Damaged, "the key '{}' appears twice", from.entries[i].key);
    if (!status.ok()) return std::move(status).error().at(fmt::format("entry {}", i));
  }
  return {};
}

}  // namespace

const DataEntry* TensorData::find(std::string_view key) const {
  for (const DataEntry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

Result<TensorData> readTensorData(ByteSpan file) {
  CARINA_TRY(const Header header, readHeader(file));
  const AlignedCopy aligned(file.first(header.bodyEnd));
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(aligned.bytes().data()),
                                 aligned.bytes().size());
  if (header.bodyEnd < 8 || header.bodyEnd >= FLATBUFFERS_MAX_BUFFER_SIZE ||
      !data::VerifyDataRootBuffer(verifier)) {
    return Error(fail(Code::Damaged, "corrupt: the flatbuffer contradicts itself"))
        .withRemedy("the file was truncated or overwritten; export it again");
  }
  const data::DataRoot& root = *data::GetDataRoot(aligned.bytes().data());
  if (root.version() != 0)
    return fail(Code::UnknownVersion, "tensor data version {} is newer than this reader", root.version());
  TensorData result;
  Copier copy(file.size());
  for (uint32_t i = 0; root.entries() != nullptr && i < root.entries()->size(); ++i) {
    auto entry =
        readEntry(file.subspan(header.base, header.segmentBytes), root, *root.entries()->Get(i), copy);
    if (!entry) return std::move(entry).error().at(fmt::format("entry {}", i));
    result.entries.push_back(std::move(*entry));
  }
  CARINA_RETURN_IF_ERROR(verify(result));
  return result;
}

Result<std::vector<TensorData>> readTensorDataFiles(std::span<const std::filesystem::path> paths) {
  std::vector<TensorData> files;
  for (const std::filesystem::path& path : paths) {
    CARINA_TRY(const auto file, MappedFile::open(path));
    auto data = readTensorData(file->bytes());
    if (!data) return std::move(data).error().inFile(path.string()).withRemedy(kDamagedRemedy);
    files.push_back(std::move(*data));
  }
  return files;
}

Result<std::string> writeTensorData(const TensorData& from, int64_t alignment) {
  CARINA_RETURN_IF_ERROR(verify(from));
  flatbuffers::FlatBufferBuilder builder;
  std::map<std::string_view, uint32_t> shared;
  std::vector<std::pair<int64_t, std::string_view>> segments;
  int64_t end = 0;
  std::vector<Offset<data::DataEntry>> entries;
  for (const DataEntry& entry : from.entries) {
    const std::string_view bytes = asText(entry.bytes);
    const auto [known, added] = shared.try_emplace(bytes, static_cast<uint32_t>(segments.size()));
    if (added) {
      end = roundUp(end, alignment);
      segments.emplace_back(end, bytes);
      end += static_cast<int64_t>(bytes.size());
    }
    const auto key = builder.CreateString(entry.key);
    Offset<data::LayoutEntry> layout;
    if (entry.layout) {
      const auto sizes = builder.CreateVector(entry.layout->sizes);
      const auto order = builder.CreateVector(entry.layout->dimOrder);
      layout = data::CreateLayoutEntry(builder, static_cast<int8_t>(entry.layout->type), sizes, order);
    }
    entries.push_back(data::CreateDataEntry(builder, key, known->second, layout));
  }
  std::vector<Offset<data::DataSegment>> table;
  table.reserve(segments.size());
  for (const auto& [offset, bytes] : segments) {
    table.push_back(data::CreateDataSegment(builder, static_cast<uint64_t>(offset), bytes.size()));
  }
  const auto segmentTable = builder.CreateVector(table);
  builder.Finish(data::CreateDataRoot(builder, 0, segmentTable, builder.CreateVector(entries)),
                 kDataIdentifier);

  // The header is inserted after the identifier. All offsets but the root's are relative, and 48 bytes
  // preserve all alignments.
  const std::string_view body(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  const auto bodyEnd = static_cast<int64_t>(kPaddedHeaderBytes + body.size());
  const int64_t base = roundUp(bodyEnd, alignment);
  std::string file(static_cast<size_t>(base + end), '\0');
  std::memcpy(file.data(), body.data(), kHeaderAt);
  put(file, 0, flatbuffers::ReadScalar<uint32_t>(body.data()) + static_cast<uint32_t>(kPaddedHeaderBytes));
  std::memcpy(file.data() + kHeaderAt, kMagic, 4);
  put(file, kLengthAt, static_cast<uint32_t>(kHeaderBytes));
  put(file, kBodyAt, static_cast<uint64_t>(kPaddedHeaderBytes));
  put(file, kBodyBytesAt, static_cast<uint64_t>(body.size()));
  put(file, kBaseAt, static_cast<uint64_t>(base));
  put(file, kSegmentBytesAt, static_cast<uint64_t>(end));
  std::memcpy(file.data() + kHeaderAt + kPaddedHeaderBytes, body.data() + kHeaderAt, body.size() - kHeaderAt);
  for (const auto& [offset, bytes] : segments) {
    if (!bytes.empty()) std::memcpy(file.data() + base + offset, bytes.data(), bytes.size());
  }
  return file;
}

std::string printTensorData(const TensorData& from) {
  std::string text =
      fmt::format("tensor data: {} entr{}\n", from.entries.size(), from.entries.size() == 1 ? "y" : "ies");
  for (const DataEntry& entry : from.entries) {
    text += fmt::format("  {}: ", entry.key);
    if (entry.layout)
      text +=
          fmt::format("{}[{}], ", scalarTypeName(entry.layout->type), fmt::join(entry.layout->sizes, ","));
    text += fmt::format("{} bytes\n", entry.bytes.size());
  }
  return text;
}

}  // namespace carina::pte
