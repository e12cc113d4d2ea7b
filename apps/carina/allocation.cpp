// SPDX-License-Identifier: Apache-2.0
// operator new and delete of the program: mimalloc, in large pages where the system gives them. A compilation
// makes and drops millions of small objects on several threads; with the C library's allocator it spends a
// third of a small network's time in page faults and an eighth in the allocator.
#include <malloc.h>
#include <mimalloc.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

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
  return allocated([bytes] { return mi_malloc(bytes); });
}

void* allocated(std::size_t bytes, std::align_val_t to) {
  return allocated([bytes, to] { return mi_malloc_aligned(bytes, static_cast<std::size_t>(to)); });
}

void adviseLargePages(std::uintptr_t begin, std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  (void)::madvise(reinterpret_cast<void*>(begin), bytes, MADV_HUGEPAGE);
#endif
}

/// Gives mimalloc room in large pages. Its objects lie in aligned segments of 32 MiB; the first one is there
/// already.
bool useLargePages() {
  constexpr std::size_t kSegment = std::size_t{32} << 20, kRoom = std::size_t{1} << 30;
  void* const object = mi_malloc(1);
  adviseLargePages(reinterpret_cast<std::uintptr_t>(object) / kSegment * kSegment, kSegment);
  mi_free(object);
  void* const room = ::mmap(nullptr, kRoom + kSegment, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  const auto begin = (reinterpret_cast<std::uintptr_t>(room) + kSegment - 1) / kSegment * kSegment;
  adviseLargePages(begin, kRoom);
  return mi_manage_os_memory(reinterpret_cast<void*>(begin), kRoom, /*is_committed=*/true, /*is_large=*/false,
                             /*is_zero=*/true, -1);
}
[[maybe_unused]] const bool large = useLargePages();

/// Tensors are the C library's memory (aligned_alloc). By default it gives every large one back to the system
/// when it is freed, and the next one begins with a page fault for every 4 KiB: a twentieth of the time of
/// calibrating mobilenet_v2. giveBackIdleMemory() trims what is kept between stages. One heap for all
/// threads: what one thread has freed another one need not ask the system for.
constexpr int kKept = 128 << 20;
[[maybe_unused]] const bool kept = mallopt(M_MMAP_THRESHOLD, 32 << 20) == 1 &&
                                   mallopt(M_TRIM_THRESHOLD, kKept) == 1 &&
                                   mallopt(M_TOP_PAD, 1 << 20) == 1 && mallopt(M_ARENA_MAX, 1) == 1;

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
  return mi_malloc(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return mi_malloc(bytes);
}
void operator delete(void* memory) noexcept {
  mi_free(memory);
}
void operator delete[](void* memory) noexcept {
  mi_free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  mi_free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  mi_free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  mi_free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  mi_free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  mi_free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  mi_free(memory);
}
