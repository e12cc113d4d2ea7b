// SPDX-License-Identifier: Apache-2.0
// Arena packing (allocator.hpp): buffers are placed one after the other at the lowest address that is free
// for their whole life; what is searched is the order.
#include "compiler/allocator.hpp"

#include <algorithm>
#include <numeric>

#include "base/shape.hpp"

namespace carina::compiler {
namespace {

/// The order in which buffers are placed, and which of them are put at the top.
struct Plan {
  std::vector<size_t> order;
  std::vector<bool> fromTop;
};

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

  /// Places the buffers in the order of `plan`: at the lowest free address, or, when asked for, at the
  /// highest one under `ceiling` (where that has room).
  Packing place(const Plan& plan, int64_t ceiling) {
    Packing packing;
    packing.addresses.assign(sizes_.size(), -1);
    for (const size_t i : plan.order) {
      taken_.clear();
      for (const size_t j : neighbours_[i]) {
        if (packing.addresses[j] >= 0 && sizes_[j] > 0) {
          taken_.emplace_back(packing.addresses[j], packing.addresses[j] + sizes_[j]);
        }
      }
      std::sort(taken_.begin(), taken_.end());
      int64_t address = 0, highest = -1;
      bool found = false;
      int64_t low = 0;
      for (const auto& [start, end] : taken_) {
        if (start - low >= sizes_[i]) {
          if (!found) address = low;
          found = true;
          highest =
              std::min(start, ceiling) - sizes_[i] >= low ? std::min(start, ceiling) - sizes_[i] : highest;
        }
        low = std::max(low, end);
      }
      if (!found) address = low;
      if (ceiling - low >= sizes_[i]) highest = ceiling - sizes_[i];
      if (plan.fromTop[i] && highest >= 0) address = highest;
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
  Plan best;
  Packing bestPacking;
  const auto consider = [&](const Plan& plan) {
    Packing packing = placer.place(plan, enough);
    if (!best.order.empty() && packing.bytes >= bestPacking.bytes) return;
    bestPacking = std::move(packing);
    best = plan;
  };
  const auto sorted = [&](auto key) {
    Plan plan{order, std::vector<bool>(ranges.size(), false)};
    std::stable_sort(plan.order.begin(), plan.order.end(),
                     [&](size_t a, size_t b) { return key(a) > key(b); });
    consider(plan);
    // Buffers that follow each other in time take turns at the bottom and at the top: a chain packs without a
    // gap.
    std::vector<size_t> byTime = order;
    std::stable_sort(byTime.begin(), byTime.end(),
                     [&](size_t a, size_t b) { return ranges[a].first < ranges[b].first; });
    for (size_t turn = 0; turn < byTime.size(); ++turn) plan.fromTop[byTime[turn]] = turn % 2 != 0;
    consider(plan);
  };
  sorted([&](size_t i) { return placer.size(i); });
  sorted([&](size_t i) { return placer.size(i) * duration(i); });
  sorted([&](size_t i) { return duration(i); });
  sorted([&](size_t i) { return -int64_t{ranges[i].first}; });
  Random random;
  Plan current = best;
  for (int attempt = 0; attempt < attempts && bestPacking.bytes > enough; ++attempt) {
    Plan candidate = current;
    // Give something that reaches the top of the memory another turn or end, and swap another pair now and
    // then.
    std::vector<size_t> tops;
    for (size_t turn = 0; turn < candidate.order.size(); ++turn) {
      const size_t i = candidate.order[turn];
      if (bestPacking.addresses[i] + placer.size(i) == bestPacking.bytes) tops.push_back(turn);
    }
    const size_t from = tops.empty() ? random.below(order.size()) : tops[random.below(tops.size())];
    if (random.below(4) == 0) {
      const size_t i = candidate.order[random.below(order.size())];
      candidate.fromTop[i] = !candidate.fromTop[i];
    }
    std::swap(candidate.order[from], candidate.order[random.below(order.size())]);
    if (attempt % 3 != 0)
      std::swap(candidate.order[random.below(order.size())], candidate.order[random.below(order.size())]);
    Packing packing = placer.place(candidate, enough);
    if (packing.bytes > bestPacking.bytes) continue;
    if (packing.bytes < bestPacking.bytes) attempt = std::max(0, attempt - attempts / 4);
    bestPacking = std::move(packing);
    current = std::move(candidate);
  }
  return bestPacking;
}

}  // namespace carina::compiler
