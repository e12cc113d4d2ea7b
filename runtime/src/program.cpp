// SPDX-License-Identifier: Apache-2.0
// Container level of a .pte: identifier, extended header, segments, named data.
#include "carina/program.hpp"

#include <string.h>

#include "format/pte_schema.hpp"
#include "plan_reader.hpp"

namespace carina::rt {

namespace schema = carina::format::pte;

namespace {

uint32_t load32(const uint8_t* at) {
  uint32_t value;
  memcpy(&value, at, sizeof(value));
  return value;
}
uint64_t load64(const uint8_t* at) {
  uint64_t value;
  memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace

Status Program::load(Bytes file, Program* program) {
  program->root_ = FbTable();
  program->plans_ = program->segments_ = program->named_ = program->inlineData_ = FbVector();
  program->segmentBase_ = 0;
  program->used_ = 0;
  if (file.data == nullptr || file.size < 8)
    return failure(Code::Truncated, "the file is shorter than a program header");
  if (memcmp(file.data + 4, schema::kIdentifier, 4) != 0) {
    return failure(Code::NotAProgram, "the identifier ET12 is missing", 4);
  }
  if (!isAligned(file.data, schema::kPayloadAlignment)) {
    return failure(Code::Misaligned, "the program must lie at a 16-byte aligned address");
  }
  size_t programBytes = file.size;
  uint64_t segmentBytes = 0;
  const bool hasHeader = file.size >= schema::kHeaderOffset + schema::kHeaderMinLength &&
                         memcmp(file.data + schema::kHeaderOffset, schema::kHeaderMagic, 4) == 0;
  if (hasHeader) {
    const uint32_t length = load32(file.data + schema::kHeaderLengthAt);
    if (length < schema::kHeaderMinLength)
      return failure(Code::Corrupt, "the extended header is too short", 12);
    const uint64_t size = load64(file.data + schema::kHeaderProgramSizeAt);
    program->segmentBase_ = load64(file.data + schema::kHeaderSegmentBaseAt);
    if (size > file.size) return failure(Code::Truncated, "the program is longer than the file", 16);
    if (program->segmentBase_ > file.size)
      return failure(Code::Truncated, "the segments begin beyond the file", 24);
    // Otherwise, data that the application writes could overlap the lists that were checked.
    if (program->segmentBase_ != 0 && program->segmentBase_ < size)
      return failure(Code::Corrupt, "the segments begin inside the program", 24);
    if (program->segmentBase_ != 0) segmentBytes = file.size - program->segmentBase_;
    if (length >= schema::kHeaderLength) {
      if (file.size < schema::kHeaderOffset + schema::kHeaderLength)
        return failure(Code::Truncated, "the extended header is cut", 8);
      const uint64_t declared = load64(file.data + schema::kHeaderSegmentBytesAt);
      if (declared > segmentBytes)
        return failure(Code::Truncated, "the segments are longer than the file", 32);
      segmentBytes = declared;
    }
    programBytes = static_cast<size_t>(size);
  }
  if (programBytes > 0x7fffffffu) return failure(Code::Unsupported, "a flatbuffer larger than 2 GiB");

  program->file_ = file;
  program->walker_ = Walker(Bytes(file.data, programBytes));
  program->used_ = programBytes;
  program->root_ = program->walker_.root();
  const FbTable& root = program->root_;
  program->plans_ = root.tables(schema::kProgramPlans);
  program->segments_ = root.tables(schema::kProgramSegments);
  program->named_ = root.tables(schema::kProgramNamedData);
  program->inlineData_ = root.tables(schema::kProgramDelegateData);
  CARINA_RT_TRY(program->walker_.status());
  if (!program->plans_.present() || program->plans_.count == 0)
    return failure(Code::Corrupt, "the program has no methods");
  for (uint32_t i = 0; i < program->segments_.count; ++i) {
    const FbTable entry = root.tableAt(program->segments_, i);
    const uint64_t offset = entry.u64(schema::kSegmentOffset);
    const uint64_t size = entry.u64(schema::kSegmentSize);
    CARINA_RT_TRY(program->walker_.status());
    if (size == 0) continue;
    if (program->segmentBase_ == 0) return failure(Code::Corrupt, "segments without an extended header", i);
    if (offset > segmentBytes || size > segmentBytes - offset) {
      return failure(Code::Truncated, "a segment reaches beyond the file", i);
    }
    const size_t end = static_cast<size_t>(program->segmentBase_ + offset + size);
    if (end > program->used_) program->used_ = end;
  }
  return Status{};
}

Text Program::methodName(uint32_t index) const {
  return index < plans_.count ? plan(index).string(schema::kPlanName) : Text{};
}

Status Program::findMethod(const char* name, uint32_t* index) const {
  for (uint32_t i = 0; i < plans_.count; ++i) {
    if (equals(methodName(i), name)) {
      *index = i;
      return Status{};
    }
  }
  CARINA_RT_TRY(walker_.status());
  return failureNamed(Code::NotFound, "the program has no method of this name", name, textLength(name));
}

Status Program::segment(uint32_t index, Bytes* bytes) const {
  if (index >= segments_.count) return failure(Code::Corrupt, "a segment index is out of range", index);
  const FbTable entry = root_.tableAt(segments_, index);
  const uint64_t size = entry.u64(schema::kSegmentSize);
  const uint64_t offset = entry.u64(schema::kSegmentOffset);
  CARINA_RT_TRY(walker_.status());
  if (size == 0) {
    *bytes = Bytes();
    return Status{};
  }
  *bytes = Bytes(file_.data + static_cast<size_t>(segmentBase_ + offset), static_cast<size_t>(size));
  return Status{};
}

Status Program::namedData(Text key, Bytes* bytes) const {
  for (uint32_t i = 0; i < named_.count; ++i) {
    const FbTable entry = root_.tableAt(named_, i);
    const Text name = entry.string(schema::kNamedKey);
    CARINA_RT_TRY(walker_.status());
    if (name.size == key.size && name.size != 0 && memcmp(name.data, key.data, key.size) == 0)
      return segment(entry.u32(schema::kNamedSegment), bytes);
  }
  return failureNamed(Code::NotFound, "no named data of this key", key.data, key.size);
}

Status Program::subsegment(const FbTable& table, uint64_t index, Bytes* bytes) const {
  const FbVector offsets = table.vector(schema::kSubsegmentOffsets, 8);
  CARINA_RT_TRY(walker_.status());
  if (index >= offsets.count)
    return failure(Code::Corrupt, "a tensor's stored data do not exist", table.position());
  CARINA_RT_TRY(segment(table.u32(schema::kSubsegmentIndex), bytes));
  const uint64_t offset = offsets.u64(static_cast<uint32_t>(index));
  if (offset > bytes->size)
    return failure(Code::Corrupt, "a tensor's stored data lie beyond their segment", table.position());
  *bytes = Bytes(bytes->data + static_cast<size_t>(offset), bytes->size - static_cast<size_t>(offset));
  return Status{};
}

Status Program::constant(uint32_t index, Bytes* bytes) const {
  const FbTable table = root_.table(schema::kProgramConstantSegment);
  if (table.vector(schema::kSubsegmentOffsets, 8).count > 0) return subsegment(table, index, bytes);
  // Programs that predate the constant segment hold each constant in the flatbuffer.
  const FbVector storage =
      root_.tableAt(root_.tables(schema::kProgramConstantBuffer), index).vector(schema::kInlineBytes, 1);
  CARINA_RT_TRY(walker_.status());
  if (!storage.present()) return failure(Code::Corrupt, "a tensor's stored data do not exist", index);
  *bytes = Bytes(storage.data, storage.count);
  return Status{};
}

Status Program::mutableData(uint64_t index, Bytes* bytes) const {
  return subsegment(root_.tableAt(root_.tables(schema::kProgramMutableSegments), 0), index, bytes);
}

Status Program::verify() const {
  walker_.beginWork(used_);
  for (uint32_t i = 0; i < plans_.count; ++i) {
    PlanReader reader;
    CARINA_RT_TRY(reader.open(*this, i));
  }
  return walker_.status();
}

}  // namespace carina::rt
