// SPDX-License-Identifier: Apache-2.0
// A bump allocator over memory that the caller owns; it never frees individual blocks and records its
// high-water mark.
#pragma once

#include "carina/span.hpp"

namespace carina::rt {

class Arena {
 public:
  Arena() = default;
  explicit Arena(MutableBytes memory) : memory_(memory) {}

  /// `alignment` is a power of two, applied to the address. Null if the memory is insufficient.
  void* allocate(size_t bytes, size_t alignment) {
    const uintptr_t next = reinterpret_cast<uintptr_t>(memory_.data) + used_;
    const size_t padding = static_cast<size_t>((alignment - (next & (alignment - 1))) & (alignment - 1));
    if (memory_.data == nullptr || padding > memory_.size - used_ || bytes > memory_.size - used_ - padding)
      return nullptr;
    void* block = memory_.data + used_ + padding;
    used_ += padding + bytes;
    if (used_ > highest_) highest_ = used_;
    return block;
  }
  template <typename T>
  T* allocateArray(size_t count) {
    if (count > SIZE_MAX / sizeof(T)) return nullptr;
    return static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
  }
  void reset() { used_ = 0; }

  uint8_t* base() const { return memory_.data; }
  size_t used() const { return used_; }
  size_t highest() const { return highest_; }
  size_t capacity() const { return memory_.size; }

 private:
  MutableBytes memory_;
  size_t used_ = 0;
  size_t highest_ = 0;
};

}  // namespace carina::rt
