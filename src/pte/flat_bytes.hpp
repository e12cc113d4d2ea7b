// SPDX-License-Identifier: Apache-2.0
// Vectors and strings out of FlatBuffers that came from a file.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/tensor.hpp"
#include "pte/program.hpp"
#include "pte/schema.hpp"

namespace carina::pte {

inline std::string textOf(const flatbuffers::String* string) {
  return string != nullptr ? string->str() : std::string();
}

/// Through memcpy: the verifier does not look at the alignment of elements wider than the length in front of
/// them.
template <typename T>
std::vector<T> copyVector(const flatbuffers::Vector<T>* from) {
  std::vector<T> items(from != nullptr ? from->size() : 0);
  if (!items.empty()) std::memcpy(items.data(), from->Data(), items.size() * sizeof(T));
  return items;
}

inline ByteVector copyBytes(ByteSpan bytes) {
  return ByteVector(bytes.begin(), bytes.end());
}

inline ByteSpan spanOf(const flatbuffers::Vector<uint8_t>* bytes) {
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()};
}

/// Bytes at an address that FlatBuffers' scalars may be read from: the bytes themselves where they lie well,
/// else a copy.
class AlignedCopy {
 public:
  explicit AlignedCopy(ByteSpan from) : bytes_(from) {
    if (reinterpret_cast<uintptr_t>(from.data()) % sizeof(Block) == 0) return;
    blocks_.resize(from.size() / sizeof(Block) + 1);
    std::memcpy(blocks_.data(), from.data(), from.size());
    bytes_ = {reinterpret_cast<const std::byte*>(blocks_.data()), from.size()};
  }
  AlignedCopy(const AlignedCopy&) = delete;
  AlignedCopy& operator=(const AlignedCopy&) = delete;
  ByteSpan bytes() const { return bytes_; }

 private:
  struct alignas(32) Block {
    std::byte bytes[32];
  };
  std::vector<Block> blocks_;
  ByteSpan bytes_;
};

}  // namespace carina::pte
