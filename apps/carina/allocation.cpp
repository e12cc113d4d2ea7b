// SPDX-License-Identifier: Apache-2.0
// operator new and delete of the program: a compilation makes and drops millions of small objects on several
// threads (base/block_memory.hpp).
#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "base/block_memory.hpp"

namespace {

template <typename Allocate>
[[gnu::noinline]] void* allocatedLater(Allocate allocate) {
  for (;;) {
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
    if (void* memory = allocate()) return memory;
  }
}

void* allocated(std::size_t bytes) {
  if (void* memory = carina::allocateBlock(bytes)) return memory;
  return allocatedLater([bytes] { return carina::allocateBlock(bytes); });
}

void* allocated(std::size_t bytes, std::align_val_t to) {
  const auto allocate = [bytes, alignment = static_cast<std::size_t>(to)] {
    const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
    return whole < bytes ? nullptr : std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
  };
  if (void* memory = allocate()) return memory;
  return allocatedLater(allocate);
}

constexpr int kKept = 64 << 20;

/// Tensors and large vectors are the C library's memory. By default it gives every large one back to the
/// system when it is freed, and the next one begins with a page fault for every 4 KiB: a twentieth of the
/// time of calibrating mobilenet_v2. giveBackIdleMemory() trims what is kept between stages. One heap for all
/// threads, which grows by enough for huge pages: there are few such calls.
constexpr int kGrowth = 8 << 20;
[[maybe_unused]] const bool kept = mallopt(M_MMAP_THRESHOLD, 32 << 20) == 1 &&
                                   mallopt(M_TRIM_THRESHOLD, kKept) == 1 &&
                                   mallopt(M_TOP_PAD, kGrowth) == 1 && mallopt(M_ARENA_MAX, 1) == 1;

}  // namespace

void* operator new(std::size_t bytes) {
  return allocated(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocated(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t to) {
  return allocated(bytes, to);
}
void* operator new[](std::size_t bytes, std::align_val_t to) {
  return allocated(bytes, to);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return carina::allocateBlock(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return carina::allocateBlock(bytes);
}
void operator delete(void* memory) noexcept {
  carina::freeBlock(memory);
}
void operator delete[](void* memory) noexcept {
  carina::freeBlock(memory);
}
void operator delete(void* memory, std::size_t bytes) noexcept {
  carina::freeBlock(memory, bytes);
}
void operator delete[](void* memory, std::size_t bytes) noexcept {
  carina::freeBlock(memory, bytes);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
