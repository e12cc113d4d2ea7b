// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/tensor.hpp"

namespace carina::compiler {

/// Read-only bytes of the program; equal contents are stored once. Most pools of a search are never read:
/// what lasts as long as they do is copied into them when their bytes are asked for.
class ConstantPool {
 public:
  static constexpr int64_t kLine = 16;

  static uint64_t hashOf(ByteSpan bytes);

  /// Offset of `bytes`, a multiple of 16.
  int64_t add(ByteSpan bytes);
  /// The same for bytes that outlive the pool and whose hashOf is known. Where what reads them asks for no
  /// more than `alignment`, a few bytes share 16 with others.
  int64_t addLasting(ByteSpan bytes, uint64_t hash, int64_t alignment = kLine);
  /// A part of what was added by itself, `within` bytes behind its offset: it will be found, too.
  void addPart(int64_t offset, int64_t within, int64_t length);
  /// Room for so many bytes more, so that the pool is not copied while it grows to them.
  void reserve(int64_t bytes) { bytes_.reserve(bytes_.size() + static_cast<size_t>(bytes)); }
  int64_t size() const { return size_; }
  const std::vector<std::byte>& bytes();
  std::vector<std::byte> take() &&;

 private:
  struct Piece {
    int64_t offset = 0;
    size_t length = 0;
    ByteSpan lasting;  // where it still lies; without data: in bytes_
  };
  std::optional<int64_t> find(ByteSpan bytes, uint64_t hash, int64_t alignment) const;
  /// Offset of a new piece: behind all others, or where the last shared line has room.
  int64_t append(ByteSpan bytes, uint64_t hash, bool lasting, int64_t alignment);
  int64_t placeOf(int64_t bytes, int64_t alignment);
  /// Copies what lies elsewhere.
  void settle();

  std::vector<Piece> pieces_;
  size_t settled_ = 0;  // pieces from the first one on that are in bytes_
  std::vector<std::byte> bytes_;
  int64_t size_ = 0;
  int64_t lineUsed_ = 0;                    // end of what the last shared line holds
  std::multimap<uint64_t, size_t> byHash_;  // pieces
};

}  // namespace carina::compiler
