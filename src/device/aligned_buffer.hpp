// SPDX-License-Identifier: Apache-2.0
// Zeroed, 64-byte aligned memory: program copies, planned pools and arenas. Large buffers are allocated page
// by page on first access: memory that a program only declares costs nothing.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "carina/span.hpp"

namespace carina::device {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    if (bytes >= kPaged) {
      void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (pages == MAP_FAILED) throw std::bad_alloc();
      data_ = {static_cast<uint8_t*>(pages), Free{bytes}};
      return;
    }
    data_ = {static_cast<uint8_t*>(::operator new(bytes, kAlignment)), Free{}};
    std::memset(data_.get(), 0, bytes);
  }
  uint8_t* data() const { return data_.get(); }
  size_t size() const { return bytes_; }
  rt::MutableBytes span() const { return {data_.get(), bytes_}; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  static constexpr size_t kPaged = size_t{1} << 20;
  struct Free {
    size_t pages;  // mapped bytes; 0: from the heap
    constexpr Free() : pages(0) {}
    constexpr explicit Free(size_t bytes) : pages(bytes) {}
    void operator()(uint8_t* data) const {
      if (pages != 0) {
        munmap(data, pages);
      } else {
        ::operator delete(data, kAlignment);
      }
    }
  };
  std::unique_ptr<uint8_t, Free> data_;
  size_t bytes_ = 0;
};

}  // namespace carina::device
