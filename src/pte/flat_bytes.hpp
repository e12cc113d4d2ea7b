// SPDX-License-Identifier: Apache-2.0
// Vectors and strings from FlatBuffers in files.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/budget.hpp"
#include "base/file.hpp"
#include "base/result.hpp"
#include "base/tensor.hpp"
#include "pte/program.hpp"
#include "pte/schema.hpp"

namespace carina::pte {

/// A scalar in host byte order at an offset that need not be aligned; the caller has checked the bounds.
template <typename T>
T loadAt(ByteSpan bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

inline ByteVector copyBytes(ByteSpan bytes) {
  return ByteVector(bytes.begin(), bytes.end());
}

inline ByteSpan spanOf(const flatbuffers::Vector<uint8_t>* bytes) {
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()};
}

/// Copies what a FlatBuffer of a file describes. Its parts may be shared, so that a small file can describe
/// far more than it holds: copies may take kFreeBytes plus kBytesPerByte for each byte of the file. Copies
/// beyond that are empty, and status() is an error.
class Copier {
 public:
  static constexpr size_t kBytesPerByte = 64, kFreeBytes = size_t{1} << 20;
  explicit Copier(size_t fileBytes) : budget_(Budget::ofFile(fileBytes, kFreeBytes, kBytesPerByte)) {}

  /// Accounts for an object of a list before it is created.
  template <typename T>
  Status room() {
    take(sizeof(T));
    return status();
  }
  Status status() const {
    if (!spent_) return {};
    return Error(fail(Code::Excessive,
                      "the contents of the file expand to more than {} times its size: parts of it are used "
                      "repeatedly",
                      kBytesPerByte))
        .withRemedy("no exporter writes such files; export the network again");
  }

  std::string text(const flatbuffers::String* from) {
    return from != nullptr && take(from->size()) ? from->str() : std::string();
  }
  std::string text(ByteSpan from) { return take(from.size()) ? std::string(asText(from)) : std::string(); }
  /// Uses memcpy: the verifier does not check the alignment of elements wider than the length that precedes
  /// them.
  template <typename T>
  std::vector<T> vector(const flatbuffers::Vector<T>* from) {
    if (from == nullptr || from->size() == 0 || !take(from->size() * sizeof(T))) return {};
    std::vector<T> items(from->size());
    std::memcpy(items.data(), from->Data(), items.size() * sizeof(T));
    return items;
  }
  ByteVector bytes(ByteSpan from) { return take(from.size()) ? copyBytes(from) : ByteVector(); }

 private:
  bool take(size_t bytes) {
    spent_ = spent_ || !budget_.take(bytes);
    return !spent_;
  }

  Budget budget_;
  bool spent_ = false;
};

/// Bytes at an address that is aligned for FlatBuffers' scalars: the original bytes if they are, else a copy.
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
