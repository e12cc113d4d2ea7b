// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

namespace carina {
namespace detail {

void runRanges(size_t count, size_t grain, Pieces pieces, const void* body, RangeCall call) {
  if (count <= grain) {
    if (count > 0) call(body, 0, count);
    return;
  }
  // By default, an exception that leaves a loop cancels the loops inside it, which then return.
  oneapi::tbb::task_group_context context(oneapi::tbb::task_group_context::isolated);
  using Range = oneapi::tbb::blocked_range<size_t>;
  const auto run = [&](const Range& range) { call(body, range.begin(), range.end()); };
  if (pieces == Pieces::Smallest)
    oneapi::tbb::parallel_for(Range(0, count, grain), run, oneapi::tbb::simple_partitioner(), context);
  else
    oneapi::tbb::parallel_for(Range(0, count, grain), run, oneapi::tbb::auto_partitioner(), context);
}

}  // namespace detail

size_t parallelThreads() {
  return static_cast<size_t>(oneapi::tbb::this_task_arena::max_concurrency());
}

}  // namespace carina
