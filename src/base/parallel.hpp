// SPDX-License-Identifier: Apache-2.0
// Loops that run on all cores. The part that all loops share is compiled once and calls bodies through a
// pointer.
#pragma once

#include <cstddef>

namespace carina {

/// How a parallel loop is divided: adaptively, as threads become idle, or into the smallest ranges from the
/// start, for loops in which a few iterations take most of the time.
enum class Pieces { Adaptive, Smallest };

namespace detail {
using RangeCall = void (*)(const void* body, size_t begin, size_t end);
void runRanges(size_t count, size_t grain, Pieces pieces, const void* body, RangeCall call);
}  // namespace detail

/// Calls body(begin, end) for ranges of about `grain` indices or more that together cover [0, count), in any
/// order and in parallel; a loop of one range runs on the calling thread. The calls must not depend on each
/// other.
///
/// An exception in a call (out of memory) ends the loop and is rethrown to its caller. Even if an enclosing
/// loop ends this way, a nested loop completes or throws: it never returns early as if it had completed.
template <typename Body>
void parallelRanges(size_t count, size_t grain, const Body& body, Pieces pieces = Pieces::Adaptive) {
  detail::runRanges(count, grain, pieces, &body, [](const void* each, size_t begin, size_t end) {
    (*static_cast<const Body*>(each))(begin, end);
  });
}

/// Calls body(0) to body(count - 1) in the same way as parallelRanges.
template <typename Body>
void parallelFor(size_t count, const Body& body, Pieces pieces = Pieces::Adaptive) {
  parallelRanges(
      count, 1,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) body(i);
      },
      pieces);
}

/// parallelFor if the work justifies `threads`; otherwise in order on the calling thread.
template <typename Body>
void parallelForIf(bool threads, size_t count, const Body& body, Pieces pieces = Pieces::Adaptive) {
  if (threads) return parallelFor(count, body, pieces);
  for (size_t i = 0; i < count; ++i) body(i);
}

/// Number of threads of a parallel loop.
size_t parallelThreads();

}  // namespace carina
