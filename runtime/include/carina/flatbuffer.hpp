// SPDX-License-Identifier: Apache-2.0
// Reads an untrusted FlatBuffers file in place. Every access is checked against the buffer; the first
// contradiction is recorded in the Walker and reads as an absent field, so that callers check once per step.
#pragma once

#include "carina/span.hpp"
#include "carina/status.hpp"

namespace carina::rt {

class Walker;

/// A vector in the buffer: `count` elements of `width` bytes from `data`. Absent vectors have data ==
/// nullptr.
struct FbVector {
  const uint8_t* data = nullptr;
  uint32_t count = 0;

  bool present() const { return data != nullptr; }
  int32_t i32(uint32_t i) const;
  int64_t i64(uint32_t i) const;
  uint64_t u64(uint32_t i) const { return static_cast<uint64_t>(i64(i)); }
};

/// A table in the buffer. Reads of an absent table return defaults.
class FbTable {
 public:
  FbTable() = default;
  bool present() const { return walker_ != nullptr; }
  /// Byte offset in the buffer, for messages.
  uint32_t position() const { return position_; }

  uint8_t u8(uint32_t slot, uint8_t otherwise = 0) const;
  int32_t i32(uint32_t slot, int32_t otherwise = 0) const;
  uint32_t u32(uint32_t slot) const { return static_cast<uint32_t>(i32(slot)); }
  int64_t i64(uint32_t slot) const;
  uint64_t u64(uint32_t slot) const { return static_cast<uint64_t>(i64(slot)); }
  double f64(uint32_t slot) const;
  FbTable table(uint32_t slot) const;
  /// A vector of scalars `width` bytes wide; its first element is aligned to `width`.
  FbVector vector(uint32_t slot, uint32_t width) const;
  /// A vector of tables: use tableAt() for its elements.
  FbVector tables(uint32_t slot) const { return vector(slot, 4); }
  FbTable tableAt(const FbVector& vector, uint32_t i) const;
  Text string(uint32_t slot) const;

 private:
  friend class Walker;
  const uint8_t* field(uint32_t slot, uint32_t width) const;

  const Walker* walker_ = nullptr;
  uint32_t position_ = 0;
  uint32_t vtable_ = 0;
  uint16_t vtableSize_ = 0;
};

class Walker {
 public:
  Walker() = default;
  /// `buffer.data` is aligned to 8.
  explicit Walker(Bytes buffer) : buffer_(buffer) {}

  FbTable root() const;
  const Bytes& buffer() const { return buffer_; }

  /// Parts of a FlatBuffer may be shared, so that a small buffer can describe far more than its own size.
  /// Code that walks lists charges steps for what it visits; more than kStepsPerByte for each of the `bytes`
  /// of the file since beginWork(), plus kFreeSteps, are recorded as a contradiction.
  static constexpr uint32_t kStepsPerByte = 16;
  static constexpr uint32_t kFreeSteps = 4096;
  void beginWork(size_t bytes) const;
  void charge(size_t steps) const;

  /// Whether no contradiction was found since construction; status() is the first one.
  bool good() const { return what_ == nullptr; }
  Status status() const { return good() ? Status{} : failure(code_, what_, where_); }

 private:
  friend class FbTable;
  FbTable tableFrom(uint32_t position) const;
  /// Follows the offset stored at `position`; on failure, records the reason and returns false.
  bool follow(uint32_t position, uint32_t* target) const;
  void note(Code code, const char* what, uint32_t where) const;

  Bytes buffer_;
  mutable const char* what_ = nullptr;
  mutable uint32_t where_ = 0;
  mutable Code code_ = Code::Corrupt;
  mutable uint64_t stepsLeft_ = 0;
};

}  // namespace carina::rt
