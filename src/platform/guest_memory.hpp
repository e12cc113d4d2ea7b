// SPDX-License-Identifier: Apache-2.0
// All memory of the emulated board in one anonymous file, so that a CPU in a process of its own can map it.
// Zero at start; pages cost nothing until they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "platform/cpu_protocol.hpp"

namespace carina::platform {

class GuestMemory {
 public:
  /// `size` bytes, a multiple of 4096, beside the page of the CPU protocol.
  static Result<GuestMemory> create(uint64_t size);
  ~GuestMemory();
  GuestMemory(GuestMemory&& other) noexcept;
  GuestMemory& operator=(GuestMemory&& other) noexcept;

  std::span<std::byte> bytes() const { return {base_ + cpu_protocol::kGuestOffset, size_}; }
  cpu_protocol::Shared& shared() const { return *reinterpret_cast<cpu_protocol::Shared*>(base_); }
  int file() const { return file_; }

 private:
  GuestMemory(int file, std::byte* base, uint64_t size) : file_(file), base_(base), size_(size) {}

  int file_ = -1;
  std::byte* base_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace carina::platform
