// SPDX-License-Identifier: Apache-2.0
#include "platform/guest_memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace carina::platform {

Result<GuestMemory> GuestMemory::create(uint64_t size) {
  CARINA_CHECK(size % 4096 == 0, "guest memory is made of pages");
  void* base =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return fail(Code::ToolFailed, "cannot allocate {} MiB of memory for the board: {}", size >> 20,
                std::strerror(errno));
  return GuestMemory(static_cast<std::byte*>(base), size);
}

GuestMemory::~GuestMemory() {
  if (base_ != nullptr) munmap(base_, size_);
}

GuestMemory::GuestMemory(GuestMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), size_(other.size_) {}

GuestMemory& GuestMemory::operator=(GuestMemory&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace carina::platform
