// SPDX-License-Identifier: Apache-2.0
// Loops that run on all cores. What they share is compiled once, so a range of them is called through a
// pointer.
#pragma once

#include <cstddef>

namespace carina {

/// Into which pieces a parallel loop is cut: ranges as threads ask for them, or the smallest ones from the
/// start, where a few take most of the time.
enum class Pieces { Adaptive, Smallest };

namespace detail {
using RangeCall = void (*)(const void* body, size_t begin, size_t end);
void runRanges(size_t count, size_t grain, Pieces pieces, const void* body, RangeCall call);
}  // namespace detail

/// Calls body(begin, end) for ranges of about `grain` indices or more that together are [0, count), in any
/// order and in parallel; a loop of one range runs on the calling thread. The calls must not depend on each
/// other.
///
/// An exception of a call (out of memory) ends the loop, and is thrown to its caller. A loop inside of
/// another one is done or throws even where that one ends so: it is never cut short as if it had been done.
template <typename Body>
void parallelRanges(size_t count, size_t grain, const Body& body, Pieces pieces = Pieces::Adaptive) {
  detail::runRanges(count, grain, pieces, &body, [](const void* each, size_t begin, size_t end) {
    (*static_cast<const Body*>(each))(begin, end);
  });
}

/// Calls body(0) to body(count - 1) as parallelRanges does its ranges.
template <typename Body>
void parallelFor(size_t count, const Body& body, Pieces pieces = Pieces::Adaptive) {
  parallelRanges(
      count, 1,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) body(i);
      },
      pieces);
}

/// The same where the work is worth starting `threads` for; otherwise in order on the calling thread.
template <typename Body>
void parallelForIf(bool threads, size_t count, const Body& body, Pieces pieces = Pieces::Adaptive) {
  if (threads) return parallelFor(count, body, pieces);
  for (size_t i = 0; i < count; ++i) body(i);
}

/// How many threads a parallel loop has.
size_t parallelThreads();

}  // namespace carina
