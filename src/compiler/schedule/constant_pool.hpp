// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/tensor.hpp"

namespace carina::compiler {

/// Read-only bytes of the program; equal contents are stored once. Most pools of a search are never read:
/// bytes that outlive the pool, or that it keeps alive, are not copied into it until its contents are
/// requested.
class ConstantPool {
 public:
  static constexpr int64_t kLine = 16;

  static uint64_t hashOf(ByteSpan bytes);

  /// Offset of `bytes`, a multiple of 16.
  int64_t add(ByteSpan bytes);
  /// The same for bytes that outlive the pool and whose hashOf is known. If their readers need no more than
  /// `alignment`, small pieces share a line with others.
  int64_t addLasting(ByteSpan bytes, uint64_t hash, int64_t alignment = kLine);
  /// The same for bytes that `owner` keeps alive; for readers of whole lines.
  int64_t addShared(ByteSpan bytes, std::shared_ptr<const void> owner);
  /// Registers a part of an added piece, `within` bytes from its offset, so that it will be found as well.
  void addPart(int64_t offset, int64_t within, int64_t length);
  int64_t size() const { return size_; }
  const std::vector<std::byte>& bytes();
  std::vector<std::byte> take() &&;

 private:
  struct Piece {
    int64_t offset = 0;
    size_t length = 0;
    ByteSpan outside;                   // the bytes while outside the pool; no data: in bytes_
    std::shared_ptr<const void> owner;  // of these, or null: they outlive the pool
  };
  std::optional<int64_t> find(ByteSpan bytes, uint64_t hash, int64_t alignment) const;
  /// Offset of a new piece: after all others, or in the last shared line if it fits there.
  int64_t append(Piece piece, uint64_t hash, int64_t alignment);
  int64_t placeOf(int64_t bytes, int64_t alignment);
  /// Copies pieces that are still outside into the pool.
  void settle();

  std::vector<Piece> pieces_;
  size_t settled_ = 0;  // leading pieces that are in bytes_
  std::vector<std::byte> bytes_;
  int64_t size_ = 0;
  int64_t lineUsed_ = 0;                    // end of the used part of the last shared line
  std::multimap<uint64_t, size_t> byHash_;  // pieces
};

}  // namespace carina::compiler
