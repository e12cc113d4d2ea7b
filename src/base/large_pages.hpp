// SPDX-License-Identifier: Apache-2.0
// Memory in large pages: a page of 4 KiB costs a fault of about a microsecond, in which a few hundred of its
// bytes could be computed.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace carina {

/// Asks the system to back `bytes` bytes at `memory`, which were not written yet, by large pages, if it has
/// them and the block is large enough. The ends that do not fill one keep small pages, so that no extra
/// memory is used.
inline void askForLargePages(void* memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  constexpr size_t kLeast = 2 * kPage;
  if (bytes < kLeast) return;
  const uintptr_t from = reinterpret_cast<uintptr_t>(memory), first = (from + kPage - 1) / kPage * kPage,
                  end = (from + bytes) / kPage * kPage;
  // A failure costs only time.
  if (first < end) (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

}  // namespace carina
