// SPDX-License-Identifier: Apache-2.0
#include "platform/guest_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace carina::platform {

Result<GuestMemory> GuestMemory::create(uint64_t size) {
  CARINA_CHECK(size % 4096 == 0, "guest memory is made of pages");
  const uint64_t total = cpu_protocol::kGuestOffset + size;
  const int file = memfd_create("carina-guest", MFD_CLOEXEC);
  if (file < 0) return fail("memory for the board: {}", std::strerror(errno));
  void* base = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(total)) == 0)
    base = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (base == MAP_FAILED) {
    const int reason = errno;
    close(file);
    return fail("{} MiB of memory for the board: {}", total >> 20, std::strerror(reason));
  }
  return GuestMemory(file, static_cast<std::byte*>(base), size);
}

GuestMemory::~GuestMemory() {
  if (base_ != nullptr) munmap(base_, cpu_protocol::kGuestOffset + size_);
  if (file_ >= 0) close(file_);
}

GuestMemory::GuestMemory(GuestMemory&& other) noexcept
    : file_(std::exchange(other.file_, -1)), base_(std::exchange(other.base_, nullptr)), size_(other.size_) {}

GuestMemory& GuestMemory::operator=(GuestMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace carina::platform
