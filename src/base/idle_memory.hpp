// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace carina {

/// Returns idle memory to the system: pages of mapped files (MappedFile maps large ones), which are read
/// again on access, and free memory in the heaps of the allocator. For use between two stages of which the
/// first needed much memory. Any thread may call it at any time.
void giveBackIdleMemory();

}  // namespace carina
