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
  if (const auto known = find(bytes, hash)) return *known;
  settle();
  const int64_t offset = append(bytes, hash, false);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  bytes_.resize(static_cast<size_t>(size_));
  return offset;
}

int64_t ConstantPool::addLasting(ByteSpan bytes, uint64_t hash) {
  if (const auto known = find(bytes, hash)) return *known;
  return append(bytes, hash, true);
}

void ConstantPool::addPart(int64_t offset, int64_t within, int64_t length) {
  settle();
  const int64_t at = offset + within;
  const ByteSpan bytes = ByteSpan(bytes_).subspan(static_cast<size_t>(at), static_cast<size_t>(length));
  const uint64_t hash = hashOf(bytes);
  if (find(bytes, hash)) return;
  byHash_.emplace(hash, pieces_.size());
  pieces_.push_back({at, bytes.size(), {}});
}

const std::vector<std::byte>& ConstantPool::bytes() {
  settle();
  return bytes_;
}

std::vector<std::byte> ConstantPool::take() && {
  settle();
  return std::move(bytes_);
}

std::optional<int64_t> ConstantPool::find(ByteSpan bytes, uint64_t hash) const {
  const auto [first, last] = byHash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Piece& piece = pieces_[it->second];
    const ByteSpan content = piece.lasting.data()
                                 ? piece.lasting
                                 : ByteSpan(bytes_).subspan(static_cast<size_t>(piece.offset), piece.length);
    if (std::ranges::equal(content, bytes)) return piece.offset;
  }
  return std::nullopt;
}

int64_t ConstantPool::append(ByteSpan bytes, uint64_t hash, bool lasting) {
  const int64_t offset = size_;
  byHash_.emplace(hash, pieces_.size());
  pieces_.push_back({offset, bytes.size(), lasting ? bytes : ByteSpan()});
  size_ = roundUp(size_ + static_cast<int64_t>(bytes.size()), 16);
  return offset;
}

void ConstantPool::settle() {
  bytes_.resize(static_cast<size_t>(size_));
  for (; settled_ < pieces_.size(); ++settled_) {
    Piece& piece = pieces_[settled_];
    std::ranges::copy(piece.lasting, bytes_.begin() + piece.offset);
    piece.lasting = {};
  }
}

}  // namespace carina::compiler
