// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/constant_pool.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/shape.hpp"

namespace carina::compiler {

uint64_t ConstantPool::hashOf(ByteSpan bytes) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

int64_t ConstantPool::add(ByteSpan bytes) {
  const uint64_t hash = hashOf(bytes);
  if (const auto known = find(bytes, hash, kLine)) return *known;
  settle();
  const int64_t offset = append({0, bytes.size(), {}, nullptr}, hash, kLine);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  bytes_.resize(static_cast<size_t>(size_));
  return offset;
}

int64_t ConstantPool::addLasting(ByteSpan bytes, uint64_t hash, int64_t alignment) {
  if (const auto known = find(bytes, hash, alignment)) return *known;
  return append({0, bytes.size(), bytes, nullptr}, hash, alignment);
}

int64_t ConstantPool::addShared(ByteSpan bytes, std::shared_ptr<const void> owner) {
  const uint64_t hash = hashOf(bytes);
  if (const auto known = find(bytes, hash, kLine)) return *known;
  return append({0, bytes.size(), bytes, std::move(owner)}, hash, kLine);
}

void ConstantPool::addPart(int64_t offset, int64_t within, int64_t length) {
  settle();
  const int64_t at = offset + within;
  const ByteSpan bytes = ByteSpan(bytes_).subspan(static_cast<size_t>(at), static_cast<size_t>(length));
  const uint64_t hash = hashOf(bytes);
  if (find(bytes, hash, kLine)) return;
  byHash_.emplace(hash, pieces_.size());
  pieces_.push_back({at, bytes.size(), {}, nullptr});
}

const std::vector<std::byte>& ConstantPool::bytes() {
  settle();
  return bytes_;
}

std::vector<std::byte> ConstantPool::take() && {
  settle();
  return std::move(bytes_);
}

std::optional<int64_t> ConstantPool::find(ByteSpan bytes, uint64_t hash, int64_t alignment) const {
  const auto [first, last] = byHash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Piece& piece = pieces_[it->second];
    if (piece.offset % alignment != 0) continue;
    const ByteSpan content = piece.outside.data()
                                 ? piece.outside
                                 : ByteSpan(bytes_).subspan(static_cast<size_t>(piece.offset), piece.length);
    if (std::ranges::equal(content, bytes)) return piece.offset;
  }
  return std::nullopt;
}

int64_t ConstantPool::append(Piece piece, uint64_t hash, int64_t alignment) {
  piece.offset = placeOf(static_cast<int64_t>(piece.length), alignment);
  byHash_.emplace(hash, pieces_.size());
  pieces_.push_back(std::move(piece));
  return pieces_.back().offset;
}

int64_t ConstantPool::placeOf(int64_t bytes, int64_t alignment) {
  // Constants of more than half a line would rarely leave space for others.
  const bool shares = alignment < kLine && bytes <= kLine / 2;
  const int64_t inLine = roundUp(lineUsed_, alignment);
  if (shares && lineUsed_ > 0 && inLine + bytes <= roundUp(lineUsed_, kLine)) {
    lineUsed_ = inLine + bytes;
    return inLine;
  }
  const int64_t offset = size_;
  if (shares) lineUsed_ = offset + bytes;
  size_ = roundUp(size_ + bytes, kLine);
  return offset;
}

void ConstantPool::settle() {
  bytes_.reserve(static_cast<size_t>(size_));
  for (; settled_ < pieces_.size(); ++settled_) {
    Piece& piece = pieces_[settled_];
    const auto begin = static_cast<size_t>(piece.offset);
    if (!piece.outside.empty() && begin >= bytes_.size()) {
      bytes_.resize(begin);
      bytes_.insert(bytes_.end(), piece.outside.begin(), piece.outside.end());
    } else {  // in a line that others have begun
      bytes_.resize(std::max(bytes_.size(), begin + piece.outside.size()));
      std::ranges::copy(piece.outside, bytes_.begin() + piece.offset);
    }
    piece.outside = {};
    piece.owner.reset();
  }
  bytes_.resize(static_cast<size_t>(size_));
}

}  // namespace carina::compiler
