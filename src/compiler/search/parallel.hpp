// SPDX-License-Identifier: Apache-2.0
// Loops that use all cores where the work is worth starting threads for.
#pragma once

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>

#include <cstddef>

namespace carina::compiler {

/// Calls body(0) to body(count - 1), each once: with `threads` in any order and in parallel, otherwise in
/// order on the calling thread. The bodies must not depend on each other.
///
/// Schedules are tried in parallel, and an exception (out of memory) in one of them cancels the loops inside
/// of the others, which then return as if they had done their work. A loop with a context of its own, as
/// here, is done or throws.
template <typename Body, typename Partitioner = oneapi::tbb::auto_partitioner>
void forEachIndex(bool threads, size_t count, const Body& body, const Partitioner& partitioner = {}) {
  if (!threads || count < 2) {
    for (size_t i = 0; i < count; ++i) body(i);
    return;
  }
  oneapi::tbb::task_group_context context(oneapi::tbb::task_group_context::isolated);
  oneapi::tbb::parallel_for(
      oneapi::tbb::blocked_range<size_t>(0, count, 1),
      [&](const oneapi::tbb::blocked_range<size_t>& range) {
        for (size_t i = range.begin(); i != range.end(); ++i) body(i);
      },
      partitioner, context);
}

}  // namespace carina::compiler
