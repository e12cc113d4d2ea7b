// SPDX-License-Identifier: Apache-2.0
// Memory for operator new of programs that make and drop millions of small objects on several threads: blocks
// of a few sizes, freed to lists of the thread that frees them. It comes from the system in pieces of 2 MiB
// that may be one huge page each, so that a compilation does not begin with a page fault for every 4 KiB.
#pragma once

#include <cstddef>

namespace carina {

/// Blocks of at most so many bytes are of this memory; larger ones are the C library's.
constexpr size_t kLargestBlock = 16384;

/// At least `bytes` bytes, aligned to 16; null when there is no memory.
void* allocateBlock(size_t bytes) noexcept;

/// Frees what allocateBlock() gave; null is nothing. `bytes` is what it was asked for.
void freeBlock(void* block) noexcept;
void freeBlock(void* block, size_t bytes) noexcept;

/// Tells the system that huge pages are welcome in this memory of the C library, which nobody has written to
/// yet, and in what its heap has grown by. A hint.
void adviseLargePages(void* memory, size_t bytes) noexcept;

}  // namespace carina
