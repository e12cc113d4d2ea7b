// SPDX-License-Identifier: Apache-2.0
#include "base/large_pages.hpp"

#include <sys/mman.h>

#include <cstdint>

namespace carina {

void adviseLargePages(void* memory, size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  const auto at = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (at + kPage - 1) / kPage * kPage, end = (at + bytes) / kPage * kPage;
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace carina
