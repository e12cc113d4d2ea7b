// SPDX-License-Identifier: Apache-2.0
#include "tflite/raw_table.hpp"

#include <array>
#include <cstring>

namespace carina::tflite {
namespace {

using flatbuffers::uoffset_t;
using flatbuffers::voffset_t;

constexpr uint8_t kLastOptions = 126;  // RightShiftOptions: later operators use another union

/// Fields that refer to vectors; all others are scalars stored in the table.
struct VectorField {
  uint8_t type;          // of the table
  uint8_t field;         // index in it
  uint8_t elementBytes;  // 1: a string with a terminating zero
};
constexpr std::array<VectorField, 7> kVectorFields = {{{3, 1, 4},  // ConcatEmbeddings
                                                       {3, 2, 4},
                                                       {17, 0, 4},   // Reshape
                                                       {30, 0, 4},   // Squeeze
                                                       {111, 0, 1},  // VarHandle
                                                       {111, 1, 1},
                                                       {115, 0, 4}}};  // Bucketize

Error damaged() {
  return Error(fail(Code::Damaged, "its options reach beyond the file"));
}

/// Bytes of a file by position; callers check accesses with holds().
class Bytes {
 public:
  explicit Bytes(ByteSpan file) : file_(file) {}
  bool holds(size_t at, size_t bytes) const { return at <= file_.size() && bytes <= file_.size() - at; }
  template <typename T>
  T read(size_t at) const {
    T value = 0;
    std::memcpy(&value, file_.data() + at, sizeof(T));
    return value;
  }
  const uint8_t* data(size_t at) const { return reinterpret_cast<const uint8_t*>(file_.data()) + at; }
  size_t positionOf(const void* pointer) const {
    return static_cast<size_t>(static_cast<const std::byte*>(pointer) - file_.data());
  }

 private:
  ByteSpan file_;
};

struct Table {
  size_t at = 0, vtable = 0;
  voffset_t vtableBytes = 0, bytes = 0;

  /// Offset of a field within the table; 0 if absent.
  voffset_t field(const Bytes& file, uint8_t index) const {
    const size_t entry = 4 + size_t{2} * index;
    return entry + 2 <= vtableBytes ? file.read<voffset_t>(vtable + entry) : voffset_t{0};
  }
};

Result<Table> readTable(const Bytes& file, const void* pointer) {
  Table table;
  table.at = file.positionOf(pointer);
  if (table.at % 4 != 0 || !file.holds(table.at, 4)) return damaged();
  const int64_t vtable = static_cast<int64_t>(table.at) - file.read<flatbuffers::soffset_t>(table.at);
  if (vtable < 0 || !file.holds(static_cast<size_t>(vtable), 4)) return damaged();
  table.vtable = static_cast<size_t>(vtable);
  table.vtableBytes = file.read<voffset_t>(table.vtable);
  table.bytes = file.read<voffset_t>(table.vtable + 2);
  if (table.vtableBytes < 4 || table.vtableBytes % 2 != 0 || table.bytes < 4 ||
      !file.holds(table.vtable, table.vtableBytes) || !file.holds(table.at, table.bytes))
    return damaged();
  return table;
}

/// Copies the vector that the field refers to; returns the copy's distance from the end of the new file.
Result<uoffset_t> copyVector(const Bytes& file, size_t field, uint8_t elementBytes, Budget& copies,
                             flatbuffers::FlatBufferBuilder& builder) {
  const size_t at = field + file.read<uoffset_t>(field);
  if (!file.holds(at, 4)) return damaged();
  const uoffset_t count = file.read<uoffset_t>(at);
  if (!file.holds(at + 4, size_t{count} * elementBytes)) return damaged();
  if (!copies.take(uint64_t{count} * elementBytes + 8))
    return Error(fail(Code::Excessive, "too many operators share their options"));
  if (elementBytes == 1)
    return builder.CreateString(reinterpret_cast<const char*>(file.data(at + 4)), count).o;
  builder.StartVector(count, elementBytes);
  builder.PushBytes(file.data(at + 4), size_t{count} * elementBytes);
  return builder.EndVector(count);
}

}  // namespace

Result<flatbuffers::Offset<void>> copyOptions(ByteSpan source, uint8_t type, const void* pointer,
                                              Budget& copies, flatbuffers::FlatBufferBuilder& builder) {
  if (type == 0 || pointer == nullptr) return flatbuffers::Offset<void>();
  if (type > kLastOptions)
    return fail(Code::UnknownVersion, "its options have the unknown type {}", type)
        .withRemedy("convert the network for a known version of TensorFlow Lite");
  const Bytes file(source);
  CARINA_TRY(const Table table, readTable(file, pointer));
  if (!copies.take(uint64_t{table.bytes} + table.vtableBytes))
    return Error(fail(Code::Excessive, "too many operators share their options"));
  std::vector<std::pair<voffset_t, uoffset_t>> references;  // field, position of its copied vector
  for (const VectorField& known : kVectorFields) {
    const voffset_t field = known.type == type ? table.field(file, known.field) : voffset_t{0};
    if (field == 0) continue;
    if (field + 4 > table.bytes) return damaged();
    CARINA_TRY(const uoffset_t vector,
               copyVector(file, table.at + field, known.elementBytes, copies, builder));
    references.emplace_back(field, vector);
  }
  // Scalars in the table keep their alignment: positions count from the end, which is aligned to 8.
  constexpr size_t kAlignment = 8;
  builder.Align(kAlignment);
  builder.Pad((2 * kAlignment - table.at % kAlignment - (builder.GetSize() + table.bytes) % kAlignment) %
              kAlignment);
  builder.PushBytes(file.data(table.at), table.bytes);
  const uoffset_t copy = builder.GetSize();
  uint8_t* const start = builder.GetCurrentBufferPointer();
  for (const auto& [field, vector] : references) {
    const uoffset_t distance = copy - field - vector;
    std::memcpy(start + field, &distance, sizeof(distance));
  }
  const auto toVtable = static_cast<flatbuffers::soffset_t>(table.vtableBytes);
  std::memcpy(start, &toVtable, sizeof(toVtable));
  builder.PushBytes(file.data(table.vtable), table.vtableBytes);
  return flatbuffers::Offset<void>(copy);
}

}  // namespace carina::tflite
