// SPDX-License-Identifier: Apache-2.0
// All memory of the emulated board. Initially zero; pages cost nothing until they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace carina::platform {

class GuestMemory {
 public:
  /// `size` bytes, a multiple of 4096, also aligned to 4096.
  static Result<GuestMemory> create(uint64_t size);
  ~GuestMemory();
  GuestMemory(GuestMemory&& other) noexcept;
  GuestMemory& operator=(GuestMemory&& other) noexcept;

  std::span<std::byte> bytes() const { return {base_, size_}; }

 private:
  GuestMemory(std::byte* base, uint64_t size) : base_(base), size_(size) {}

  std::byte* base_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace carina::platform
