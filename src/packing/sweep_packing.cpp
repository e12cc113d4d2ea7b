// SPDX-License-Identifier: Apache-2.0
#include "packing/sweep_packing.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/shape.hpp"

namespace carina {
namespace {

class Sweep {
 public:
  Sweep(std::span<const LiveRange> ranges, int64_t alignment) : ranges_(ranges), alignment_(alignment) {}

  Packing run() {
    Packing packing;
    packing.addresses.assign(ranges_.size(), 0);
    std::set<std::pair<int64_t, size_t>> live;  // last step, buffer
    std::vector<size_t> order(ranges_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return ranges_[a].first < ranges_[b].first; });
    for (const size_t i : order) {
      while (!live.empty() && live.begin()->first < ranges_[i].first) {
        const size_t dead = live.begin()->second;
        live.erase(live.begin());
        release(packing.addresses[dead], sizeOf(dead));
      }
      packing.addresses[i] = take(sizeOf(i));
      live.emplace(ranges_[i].last, i);
    }
    packing.bytes = highest_;
    return packing;
  }

 private:
  int64_t sizeOf(size_t i) const { return roundUp(ranges_[i].bytes, alignment_); }

  int64_t take(int64_t size) {
    if (size == 0) return 0;
    const auto gap = bySize_.lower_bound({size, 0});
    if (gap != bySize_.end()) {
      const auto [length, start] = *gap;
      forget(start, length);
      if (length > size) add(start + size, length - size);
      return start;
    }
    // A gap at the top is extended.
    int64_t start = top_;
    if (!gaps_.empty()) {
      const auto last = std::prev(gaps_.end());
      if (last->first + last->second == top_) {
        start = last->first;
        forget(last->first, last->second);
      }
    }
    top_ = start + size;
    highest_ = std::max(highest_, top_);
    return start;
  }

  void release(int64_t start, int64_t size) {
    if (size == 0) return;
    auto next = gaps_.lower_bound(start);
    if (next != gaps_.end() && next->first == start + size) {
      const auto [nextStart, length] = *next;
      forget(nextStart, length);
      size += length;
    }
    next = gaps_.lower_bound(start);
    if (next != gaps_.begin()) {
      const auto [before, length] = *std::prev(next);
      if (before + length == start) {
        forget(before, length);
        start = before;
        size += length;
      }
    }
    add(start, size);
  }
  void add(int64_t start, int64_t size) {
    gaps_.emplace(start, size);
    bySize_.emplace(size, start);
  }
  void forget(int64_t start, int64_t size) {
    gaps_.erase(start);
    bySize_.erase({size, start});
  }

  std::span<const LiveRange> ranges_;
  int64_t alignment_;
  std::map<int64_t, int64_t> gaps_;               // start -> size, below top_
  std::set<std::pair<int64_t, int64_t>> bySize_;  // size, start
  int64_t top_ = 0, highest_ = 0;
};

}  // namespace

Packing sweepPacking(std::span<const LiveRange> ranges, int64_t alignment) {
  return Sweep(ranges, alignment).run();
}

}  // namespace carina
