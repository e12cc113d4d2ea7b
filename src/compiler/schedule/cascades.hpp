// SPDX-License-Identifier: Apache-2.0
// Which passes run together so that the arena stays small: cascades, chosen by memory and cycles. Passes keep
// their order; maps between groups are held whole, those inside a cascade in rolling buffers.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "compiler/schedule/stripes.hpp"
#include "npu/timing/timing.hpp"
#include "packing/packing.hpp"

namespace carina::compiler {

/// Passes [first, last]: a single one, a U85 chain, or (rows > 0) a cascade that computes this many rows of
/// the last pass at a time.
struct Group {
  int32_t first = 0, last = 0;
  int32_t rows = 0;

  bool operator==(const Group&) const = default;
};

/// What the choice depends on in a pass.
struct CascadePass {
  const npu::KernelOperation* operation = nullptr;  // null: cannot be part of a cascade
  bool startsUnit = true;  // false: chained to the pass before it; both stay in one group
  /// Passes that produce IFM and IFM2, the last one if there are several; -1 for anything else.
  int32_t ifmProducer = -1, ifm2Producer = -1;
  int32_t joined = -1;  // the pass before that writes other parts of the same rows of the buffer
  /// A cascade with this pass must start after pass `after`, which writes memory that is not read row by row.
  int32_t after = -1;
  /// The result's buffer (index into CascadeProblem::buffers); -1: none (chained).
  int32_t buffer = -1;
  /// The first and the last pass that use the buffer, if all of them write or read it by rows; else -1.
  int32_t rollsFrom = -1, rollsUntil = -1;
  int64_t rowBytes = 0;      // of the buffer
  int64_t inPlaceBytes = 0;  // bytes of a dying input that the result takes over, outside of cascades
  int64_t stagedBytes = 0;   // staged weights if the pass runs on its own
  int64_t stagedWhole = 0;   // the same if all of them are kept, as in a cascade
};

/// Which maps of a pass are in the memory behind a cache instead of in it.
struct MapsBehind {
  bool ifm = false, ifm2 = false, ofm = false;

  auto operator<=>(const MapsBehind&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct CascadeProblem {
  std::vector<CascadePass> passes;
  std::vector<LiveRange> buffers;  // of the arena or the cache, in passes
  /// Buffers of more bytes than this are in the memory behind a cache while they are whole, and take nothing
  /// of the cache. A cascade that holds some rows of such a buffer has these in the cache.
  int64_t maxCachedMapBytes = std::numeric_limits<int64_t>::max();
  /// Estimated cycles of a pass on its own for the first `rows` rows of its OFM.
  std::function<npu::Cycles(int32_t pass, int32_t rows, MapsBehind behind)> cycles;
};

struct Grouping {
  std::vector<Group> groups;
  int64_t bytes = 0;  // largest sum of live bytes
  npu::Cycles cycles = 0;
};

/// The fewest cycles with at most `limit` live bytes at any time; if that cannot be reached, the grouping
/// with the fewest bytes. `limit` 0: the fewest bytes, then the fewest cycles.
Grouping chooseGroups(const CascadeProblem& problem, int64_t limit);

/// The passes of a cascade as input of the stripe planner.
std::vector<StripedPass> stripedPasses(const CascadeProblem& problem, const Group& group);

}  // namespace carina::compiler
