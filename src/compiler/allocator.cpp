// SPDX-License-Identifier: Apache-2.0
// Arena packing (allocator.hpp): buffers are placed one after the other at the lowest address that is free for their whole
// life; what is searched is the order.
#include "compiler/allocator.hpp"

#include <algorithm>
#include <numeric>

#include "base/shape.hpp"

namespace carina::compiler {
namespace {

/// Which ranges can collide, and sizes rounded to the alignment.
class Placer {
 public:
  Placer(std::span<const LiveRange> ranges, int64_t alignment) : neighbours_(ranges.size()) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      sizes_.push_back(roundUp(ranges[i].bytes, alignment));
      for (size_t j = 0; j < ranges.size(); ++j) {
        if (i != j && ranges[i].overlaps(ranges[j])) neighbours_[i].push_back(j);
      }
    }
  }

  Packing place(const std::vector<size_t>& order) {
    Packing packing;
    packing.addresses.assign(sizes_.size(), -1);
    for (const size_t i : order) {
      taken_.clear();
      for (const size_t j : neighbours_[i]) {
        if (packing.addresses[j] >= 0 && sizes_[j] > 0) {
          taken_.emplace_back(packing.addresses[j], packing.addresses[j] + sizes_[j]);
        }
      }
      std::sort(taken_.begin(), taken_.end());
      int64_t address = 0;
      for (const auto& [start, end] : taken_) {
        if (start - address >= sizes_[i]) break;
        address = std::max(address, end);
      }
      packing.addresses[i] = address;
      packing.bytes = std::max(packing.bytes, address + sizes_[i]);
    }
    return packing;
  }

  int64_t size(size_t i) const { return sizes_[i]; }

 private:
  std::vector<int64_t> sizes_;
  std::vector<std::vector<size_t>> neighbours_;
  std::vector<std::pair<int64_t, int64_t>> taken_;
};

/// A small linear congruential generator: the same packing on every machine.
class Random {
 public:
  size_t below(size_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<size_t>((state_ >> 33) % n);
  }

 private:
  uint64_t state_ = 0x9e3779b97f4a7c15ull;
};

}  // namespace

int64_t packingLowerBound(std::span<const LiveRange> ranges, int64_t alignment) {
  // The live sum changes only where a range starts.
  int64_t bound = 0;
  for (const LiveRange& at : ranges) {
    int64_t sum = 0;
    for (const LiveRange& range : ranges) {
      if (range.first <= at.first && at.first <= range.last) sum += roundUp(range.bytes, alignment);
    }
    bound = std::max(bound, sum);
  }
  return bound;
}

Packing pack(std::span<const LiveRange> ranges, int64_t target, int attempts, int64_t alignment) {
  if (ranges.empty()) return {};
  Placer placer(ranges, alignment);
  const int64_t enough = std::max(packingLowerBound(ranges, alignment), target);
  std::vector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto duration = [&](size_t i) { return int64_t{ranges[i].last} - ranges[i].first + 1; };
  std::vector<size_t> best;
  Packing bestPacking;
  const auto consider = [&](std::vector<size_t> candidate) {
    Packing packing = placer.place(candidate);
    if (best.empty() || packing.bytes < bestPacking.bytes) {
      bestPacking = std::move(packing);
      best = std::move(candidate);
    }
  };
  const auto sorted = [&](auto key) {
    std::vector<size_t> result = order;
    std::stable_sort(result.begin(), result.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
    return result;
  };
  consider(sorted([&](size_t i) { return placer.size(i); }));
  consider(sorted([&](size_t i) { return placer.size(i) * duration(i); }));
  consider(sorted([&](size_t i) { return duration(i); }));
  consider(sorted([&](size_t i) { return -int64_t{ranges[i].first}; }));
  Random random;
  std::vector<size_t> current = best;
  for (int attempt = 0; attempt < attempts && bestPacking.bytes > enough; ++attempt) {
    std::vector<size_t> candidate = current;
    // Move something that reaches the top of the memory to an earlier turn, and swap another pair now and then.
    std::vector<size_t> tops;
    for (size_t turn = 0; turn < candidate.size(); ++turn) {
      const size_t i = candidate[turn];
      if (bestPacking.addresses[i] + placer.size(i) == bestPacking.bytes) tops.push_back(turn);
    }
    const size_t from = tops.empty() ? random.below(candidate.size()) : tops[random.below(tops.size())];
    const size_t to = random.below(candidate.size());
    std::swap(candidate[from], candidate[to]);
    if (attempt % 3 != 0) std::swap(candidate[random.below(candidate.size())], candidate[random.below(candidate.size())]);
    Packing packing = placer.place(candidate);
    if (packing.bytes <= bestPacking.bytes) {
      if (packing.bytes < bestPacking.bytes) attempt = 0;
      bestPacking = std::move(packing);
      current = std::move(candidate);
    }
  }
  return bestPacking;
}

}  // namespace carina::compiler
