// SPDX-License-Identifier: Apache-2.0
// Bounds-checked FlatBuffers access (wire format: little-endian; tables point back to a vtable of u16 field
// offsets).
#include "carina/flatbuffer.hpp"

#include <string.h>

namespace carina::rt {
namespace {

template <typename T>
T load(const uint8_t* at) {
  T value;
  memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace

int32_t FbVector::i32(uint32_t i) const {
  return load<int32_t>(data + size_t{i} * 4);
}
int64_t FbVector::i64(uint32_t i) const {
  return load<int64_t>(data + size_t{i} * 8);
}

void Walker::note(Code code, const char* what, uint32_t where) const {
  if (what_ != nullptr) return;
  code_ = code;
  what_ = what;
  where_ = where;
}

void Walker::beginWork(size_t bytes) const {
  stepsLeft_ = uint64_t{kStepsPerByte} * bytes + kFreeSteps;
}

void Walker::charge(size_t steps) const {
  if (steps > stepsLeft_) {
    note(Code::Unsupported,
         "checking the program takes more steps than its size allows: parts of it are used too often", 0);
    stepsLeft_ = 0;
    return;
  }
  stepsLeft_ -= steps;
}

bool Walker::follow(uint32_t position, uint32_t* target) const {
  if (buffer_.size < 4 || position > buffer_.size - 4) {
    note(Code::Truncated, "an offset lies beyond the end", position);
    return false;
  }
  const uint32_t offset = load<uint32_t>(buffer_.data + position);
  if (offset == 0 || offset > buffer_.size - position) {
    note(Code::Corrupt, "an offset points outside the program", position);
    return false;
  }
  *target = position + offset;
  return true;
}

FbTable Walker::tableFrom(uint32_t position) const {
  if (position > buffer_.size || buffer_.size - position < 4) {
    note(Code::Truncated, "a table lies beyond the end", position);
    return {};
  }
  if (!isAligned(uintptr_t{position}, 4)) {
    note(Code::Misaligned, "a table is not 4-byte aligned", position);
    return {};
  }
  const int64_t vtable = static_cast<int64_t>(position) - load<int32_t>(buffer_.data + position);
  if (vtable < 0 || vtable + 4 > static_cast<int64_t>(buffer_.size) || (vtable & 1) != 0) {
    note(Code::Corrupt, "a table's vtable lies outside the program", position);
    return {};
  }
  FbTable table;
  table.position_ = position;
  table.vtable_ = static_cast<uint32_t>(vtable);
  table.vtableSize_ = load<uint16_t>(buffer_.data + vtable);
  if (table.vtableSize_ < 4 || table.vtableSize_ > buffer_.size - table.vtable_) {
    note(Code::Corrupt, "a vtable is larger than the program", position);
    return {};
  }
  table.walker_ = this;
  return table;
}

FbTable Walker::root() const {
  uint32_t position = 0;
  return follow(0, &position) ? tableFrom(position) : FbTable{};
}

const uint8_t* FbTable::field(uint32_t slot, uint32_t width) const {
  if (walker_ == nullptr) return nullptr;
  const uint32_t entry = 4 + 2 * slot;
  if (entry + 2 > vtableSize_) return nullptr;
  const uint16_t offset = load<uint16_t>(walker_->buffer_.data + vtable_ + entry);
  if (offset == 0) return nullptr;
  // Not checked against the table's size: Python's FlatBuffers builder shares vtables between tables of
  // different sizes.
  if (offset < 4 || walker_->buffer_.size - position_ < size_t{offset} + width) {
    walker_->note(Code::Corrupt, "a field lies outside the program", position_);
    return nullptr;
  }
  return walker_->buffer_.data + position_ + offset;
}

uint8_t FbTable::u8(uint32_t slot, uint8_t otherwise) const {
  const uint8_t* at = field(slot, 1);
  return at != nullptr ? *at : otherwise;
}
int32_t FbTable::i32(uint32_t slot, int32_t otherwise) const {
  const uint8_t* at = field(slot, 4);
  return at != nullptr ? load<int32_t>(at) : otherwise;
}
int64_t FbTable::i64(uint32_t slot) const {
  const uint8_t* at = field(slot, 8);
  return at != nullptr ? load<int64_t>(at) : 0;
}
double FbTable::f64(uint32_t slot) const {
  const uint8_t* at = field(slot, 8);
  return at != nullptr ? load<double>(at) : 0.0;
}

FbTable FbTable::table(uint32_t slot) const {
  const uint8_t* at = field(slot, 4);
  uint32_t target = 0;
  if (at == nullptr || !walker_->follow(static_cast<uint32_t>(at - walker_->buffer_.data), &target))
    return {};
  return walker_->tableFrom(target);
}

FbVector FbTable::vector(uint32_t slot, uint32_t width) const {
  const uint8_t* at = field(slot, 4);
  uint32_t target = 0;
  if (at == nullptr || !walker_->follow(static_cast<uint32_t>(at - walker_->buffer_.data), &target))
    return {};
  const Bytes& buffer = walker_->buffer_;
  if (target > buffer.size || buffer.size - target < 4) {
    walker_->note(Code::Truncated, "a vector lies beyond the end", target);
    return {};
  }
  const uint32_t count = load<uint32_t>(buffer.data + target);
  if (count > (buffer.size - target - 4) / width) {
    walker_->note(Code::Truncated, "a vector is longer than the program", target);
    return {};
  }
  // Builders do not align the elements of an empty vector.
  if (count != 0 && !isAligned(buffer.data + target + 4, width)) {
    walker_->note(Code::Misaligned, "a vector is not aligned to its elements", target);
    return {};
  }
  FbVector result;
  result.data = buffer.data + target + 4;
  result.count = count;
  return result;
}

FbTable FbTable::tableAt(const FbVector& vector, uint32_t i) const {
  if (walker_ == nullptr || i >= vector.count) return {};
  uint32_t target = 0;
  const uint32_t position = static_cast<uint32_t>(vector.data - walker_->buffer_.data) + i * 4;
  return walker_->follow(position, &target) ? walker_->tableFrom(target) : FbTable{};
}

Text FbTable::string(uint32_t slot) const {
  const FbVector characters = vector(slot, 1);
  return Text(reinterpret_cast<const char*>(characters.data), characters.count);
}

}  // namespace carina::rt
