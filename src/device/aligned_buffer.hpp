// SPDX-License-Identifier: Apache-2.0
// Zeroed bytes at a 64-byte aligned address: program copies, planned pools and arenas.
#pragma once

#include <cstddef>
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
    data_.reset(static_cast<uint8_t*>(::operator new(bytes, kAlignment)));
    std::memset(data_.get(), 0, bytes);
  }
  uint8_t* data() const { return data_.get(); }
  size_t size() const { return bytes_; }
  rt::MutableBytes span() const { return {data_.get(), bytes_}; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(uint8_t* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<uint8_t, Free> data_;
  size_t bytes_ = 0;
};

}  // namespace carina::device
