// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace carina {

/// Gives back memory that nothing needs at the moment: pages of mapped files (MappedFile: large ones are
/// mapped), which come from the system again when they are read, and what is free in the heaps of the
/// allocator. For the moment between two stages of which the first used much. Any thread may call it at any
/// time.
void giveBackIdleMemory();

}  // namespace carina
