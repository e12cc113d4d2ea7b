// SPDX-License-Identifier: Apache-2.0
// Which passes run together so that the arena stays small: cascades, chosen by memory and cycles. Passes keep
// their order; between groups maps are held whole, inside a cascade in rolling buffers.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "compiler/schedule/allocator.hpp"
#include "compiler/schedule/stripes.hpp"
#include "npu/timing/timing.hpp"

namespace carina::compiler {

/// Passes [first, last]: a single one, a U85 chain, or (rows > 0) a cascade with so many rows of the last
/// pass at a time.
struct Group {
  int32_t first = 0, last = 0;
  int32_t rows = 0;

  bool operator==(const Group&) const = default;
};

/// What the choice needs to know about a pass.
struct CascadePass {
  const npu::KernelOperation* operation = nullptr;  // null: cannot be part of a cascade
  bool startsUnit = true;  // false: chained to the pass before it; both stay in one group
  /// Passes whose results IFM and IFM2 are, -1 for anything else.
  int32_t ifmProducer = -1, ifm2Producer = -1;
  /// A cascade with this pass starts after this one: it writes memory that is not read row by row.
  int32_t after = -1;
  /// The result's buffer (index into CascadeProblem::buffers); -1: none (chained).
  int32_t buffer = -1;
  /// The last pass that reads the result when nothing else does, and when it has a buffer of its own; else
  /// -1.
  int32_t rollsUntil = -1;
  int64_t rowBytes = 0;      // of the result
  int64_t inPlaceBytes = 0;  // the result takes over so many bytes of a dying input, outside of cascades
  int64_t stagedBytes = 0;   // staged weights while the pass runs by itself
  int64_t stagedWhole = 0;   // and when all of them stay, as in a cascade
};

/// Which maps of a pass lie in the memory behind a cache instead of in it.
struct MapsBehind {
  bool ifm = false, ifm2 = false, ofm = false;

  auto operator<=>(const MapsBehind&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct CascadeProblem {
  std::vector<CascadePass> passes;
  std::vector<LiveRange> buffers;  // of the arena or the cache, in passes
  /// Buffers that need more bytes than this lie in the memory behind a cache while they are whole, and need
  /// none of the cache's. A cascade that holds some rows of one has these in the cache.
  int64_t wholeAtMost = std::numeric_limits<int64_t>::max();
  /// Estimate of a pass by itself on the first `rows` rows of its OFM.
  std::function<npu::Cycles(int32_t pass, int32_t rows, MapsBehind behind)> cycles;
};

struct Grouping {
  std::vector<Group> groups;
  int64_t bytes = 0;  // largest sum of live bytes
  npu::Cycles cycles = 0;
};

/// The fewest cycles with at most `limit` live bytes at any time; when that cannot be reached, the grouping
/// with the fewest bytes. `limit` 0: the fewest bytes, then the fewest cycles.
Grouping chooseGroups(const CascadeProblem& problem, int64_t limit);

/// The passes of a cascade as the stripe planner takes them.
std::vector<StripedPass> stripedPasses(const CascadeProblem& problem, const Group& group);

}  // namespace carina::compiler
