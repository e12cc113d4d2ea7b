// SPDX-License-Identifier: Apache-2.0
// Finds accesses that no wait orders. Commands of one list run one after the other; between lists, only waits
// for counters, and the data that PLE stripes take from MCE stripes, establish that something is over. A
// clock per command records what is known to be over when it begins; every memory cell records its last
// accesses.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ethosn/stream/command_stream.hpp"

namespace carina::ethosn::model {

/// Per counter, how many of its units are known to be done.
struct Clock {
  std::array<uint32_t, kCounters> done{};
  void join(const Clock& other) {
    for (size_t i = 0; i < kCounters; ++i) done[i] = std::max(done[i], other.done[i]);
  }
};

/// A unit of work: the `ordinal`-th (from 1) of its counter. Ordinal 0: none.
struct Access {
  Counter counter = Counter::DmaRead;
  uint32_t ordinal = 0;
};

struct Conflict {
  Access with;
  bool withWrite = false;
};

/// Last accesses to each cell of a memory.
class AccessMap {
 public:
  AccessMap() = default;
  explicit AccessMap(size_t cells) : cells_(cells) {}

  bool empty() const { return cells_.empty(); }
  /// Records an access to `count` cells, `step` apart, and returns the first conflict with an access that
  /// `clock` does not order before it. Cells beyond the map are ignored.
  std::optional<Conflict> touch(size_t first, size_t count, size_t step, Access access, bool write,
                                const Clock& clock);

 private:
  struct Cell {
    uint32_t writer = 0;                // ordinal << 3 | counter
    std::array<uint32_t, 5> readers{};  // last ordinal of each of kReaders
  };
  std::vector<Cell> cells_;
};

}  // namespace carina::ethosn::model
