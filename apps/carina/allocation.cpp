// SPDX-License-Identifier: Apache-2.0
// operator new and delete of the program: oneTBB's scalable allocator. A compilation makes and drops millions
// of small objects on several threads, which takes about half as long with it as with the C library's.
#include <malloc.h>
#include <oneapi/tbb/scalable_allocator.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/large_pages.hpp"

namespace {

template <typename Allocate>
void* allocated(Allocate allocate) {
  for (;;) {
    if (void* memory = allocate()) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

void* allocated(std::size_t bytes) {
  void* memory = allocated([bytes] { return scalable_malloc(bytes); });
  carina::askForLargePages(memory, bytes);
  return memory;
}

void* allocated(std::size_t bytes, std::align_val_t to) {
  return allocated([bytes, to] { return scalable_aligned_malloc(bytes, static_cast<std::size_t>(to)); });
}

/// Memory beyond this goes back to the system when it is free instead of waiting for objects of its size.
constexpr intptr_t kKept = intptr_t{64} << 20;
[[maybe_unused]] const int limited = scalable_allocation_mode(TBBMALLOC_SET_SOFT_HEAP_LIMIT, kKept);

/// Tensors are the C library's memory (aligned_alloc). By default it gives every large one back to the system
/// when it is freed, and the next one begins with a page fault for every 4 KiB: a twentieth of the time of
/// calibrating mobilenet_v2. giveBackIdleMemory() trims what is kept between stages.
[[maybe_unused]] const bool kept =
    mallopt(M_MMAP_THRESHOLD, 32 << 20) == 1 && mallopt(M_TRIM_THRESHOLD, kKept) == 1;

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
  return scalable_malloc(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return scalable_malloc(bytes);
}
void operator delete(void* memory) noexcept {
  scalable_free(memory);
}
void operator delete[](void* memory) noexcept {
  scalable_free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  scalable_free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  scalable_free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  scalable_aligned_free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  scalable_aligned_free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  scalable_aligned_free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  scalable_aligned_free(memory);
}
