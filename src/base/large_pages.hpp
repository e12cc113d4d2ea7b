// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace carina {

/// Tells the system that large pages are welcome in the 2 MiB units that lie whole in `bytes` bytes from
/// `memory`, which nobody has written to yet: without them a stage begins with a page fault for every 4 KiB.
/// A hint; what the memory holds does not change.
void adviseLargePages(void* memory, size_t bytes) noexcept;

}  // namespace carina
