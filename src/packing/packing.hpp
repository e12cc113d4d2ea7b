// SPDX-License-Identifier: Apache-2.0
// Packs buffers with lifetimes into one memory area.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace carina {

/// A buffer that is live during the time steps [first, last].
struct LiveRange {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;

  bool overlaps(const LiveRange& other) const { return first <= other.last && other.first <= last; }
  bool operator==(const LiveRange&) const = default;
};

/// Bytes times steps, at most 2^60: sizes come from files.
inline int64_t areaOf(const LiveRange& range) {
  constexpr int64_t kMost = int64_t{1} << 60;
  const int64_t duration = int64_t{range.last} - range.first + 1;
  return range.bytes > kMost / std::max<int64_t>(duration, 1) ? kMost : range.bytes * duration;
}

struct Packing {
  std::vector<int64_t> addresses;  // multiples of the alignment
  int64_t bytes = 0;               // end of the highest buffer
};

/// Largest sum of sizes (rounded up to the alignment) that are live at the same time: no packing is smaller.
int64_t packingLowerBound(std::span<const LiveRange> ranges, int64_t alignment = 16);

/// Placement in several orders, then by best fit with random variations, then by swaps in the order
/// (deterministic), until the lower bound is reached, `target` bytes suffice (0: as small as possible), or
/// `attempts` swaps bring no improvement. Large problems get fewer attempts, and from about 260,000 pairs of
/// buffers that are live at the same time a sweep over time replaces the orders, so that the run time stays
/// near n log n.
Packing pack(std::span<const LiveRange> ranges, int64_t target = 0, int attempts = 2000,
             int64_t alignment = 16);

/// pack() for the schedules of one search, which are alike: a problem seen before is not solved again, and
/// the total number of attempts is limited, so that networks of many stripes do not take seconds.
class Packer {
 public:
  Packing pack(std::span<const LiveRange> ranges, int64_t target, int attempts);

 private:
  struct Known {
    std::vector<LiveRange> ranges;
    int64_t target = 0;
    int attempts = 0;
    Packing packing;
  };

  std::vector<Known> known_;          // the latest ones
  size_t steps_ = size_t{128} << 20;  // remaining: about a second
};

}  // namespace carina
