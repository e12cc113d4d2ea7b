// SPDX-License-Identifier: Apache-2.0
// operator new and delete of the program: oneTBB's scalable allocator. A compilation allocates and frees
// millions of small objects on several threads, in about half the time that the C library's allocator takes.
#include <malloc.h>
#include <oneapi/tbb/scalable_allocator.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/large_pages.hpp"

namespace {

/// Free small objects of a thread, for reuse at the same size: most are short-lived, and the allocator takes
/// 130 instructions for an allocation and a release.
class FreeObjects {
 public:
  static constexpr std::size_t kLargest = 512;

  /// The memory for an object of the given size (1 to kLargest).
  static std::size_t bytesOf(std::size_t bytes) { return (bytes + kStep - 1) / kStep * kStep; }

  void* take(std::size_t bytes) {
    List& list = lists_[(bytes - 1) / kStep];
    Object* const object = list.first;
    if (object) {
      list.first = object->next;
      list.room += bytesOf(bytes);
    }
    return object;
  }
  /// Whether it could be kept.
  bool keep(void* memory, std::size_t bytes) {
    List& list = lists_[(bytes - 1) / kStep];
    const std::size_t taken = bytesOf(bytes);
    if (list.room < taken) return false;
    list.room -= taken;
    list.first = new (memory) Object{list.first};
    return true;
  }

 private:
  static constexpr std::size_t kStep = 16, kMostBytes = std::size_t{64} << 10;
  struct Object {
    Object* next;
  };
  struct List {
    Object* first = nullptr;
    std::size_t room = kMostBytes;
  };
  List lists_[kLargest / kStep];
};
constinit thread_local FreeObjects freeObjects;

template <typename Allocate>
void* allocated(Allocate allocate) {
  for (;;) {
    if (void* memory = allocate()) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

bool isSmall(std::size_t bytes) {
  return bytes - 1 < FreeObjects::kLargest;  // 0 is not
}

/// Small objects are allocated with the sizes that FreeObjects assumes, whoever requests them.
void* fresh(std::size_t bytes) noexcept {
  return scalable_malloc(isSmall(bytes) ? FreeObjects::bytesOf(bytes) : bytes);
}

void* allocated(std::size_t bytes) {
  if (isSmall(bytes)) {
    if (void* const memory = freeObjects.take(bytes)) return memory;
    return allocated([bytes] { return fresh(bytes); });
  }
  void* memory = allocated([bytes] { return scalable_malloc(bytes); });
  carina::askForLargePages(memory, bytes);
  return memory;
}

void* allocated(std::size_t bytes, std::align_val_t to) {
  // For zero bytes scalable_aligned_malloc() returns null, which would look like a failure.
  return allocated([size = std::max<std::size_t>(bytes, 1), to] {
    return scalable_aligned_malloc(size, static_cast<std::size_t>(to));
  });
}

void release(void* memory, std::size_t bytes) noexcept {
  if (memory && isSmall(bytes) && freeObjects.keep(memory, bytes)) return;
  scalable_free(memory);
}

/// Free memory beyond this is returned to the system instead of waiting for objects of its size.
constexpr intptr_t kKept = intptr_t{64} << 20;
[[maybe_unused]] const int limited = scalable_allocation_mode(TBBMALLOC_SET_SOFT_HEAP_LIMIT, kKept);

/// Tensors are allocated by the C library (aligned_alloc). By default it returns every large block to the
/// system when it is freed, and the next one begins with a page fault for every 4 KiB: a twentieth of the
/// time of calibrating mobilenet_v2. giveBackIdleMemory() trims retained memory between stages.
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
  return fresh(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return fresh(bytes);
}
void operator delete(void* memory) noexcept {
  scalable_free(memory);
}
void operator delete[](void* memory) noexcept {
  scalable_free(memory);
}
void operator delete(void* memory, std::size_t bytes) noexcept {
  release(memory, bytes);
}
void operator delete[](void* memory, std::size_t bytes) noexcept {
  release(memory, bytes);
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
