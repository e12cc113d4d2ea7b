// SPDX-License-Identifier: Apache-2.0
// Arena packing (allocator.hpp): buffers are placed one after another at the lowest address that is free for
// their whole lifetime; the search is over the order.
#include "compiler/schedule/allocator.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/shape.hpp"
#include "base/sweep_packing.hpp"

namespace carina::compiler {
namespace {

/// The order in which buffers are placed, and which of them are put at the top.
struct Plan {
  std::vector<size_t> order;
  std::vector<bool> fromTop;
};

/// Placement costs at least one step per pair of buffers that are live at the same time. Beyond this many
/// pairs (some 720 buffers that are always live) a packing takes seconds, and one sweep over time has to do.
constexpr size_t kMaxPairs = size_t{1} << 18;
/// Limit on the steps of all attempts together: a network of a thousand operations gets the usual 2,000
/// attempts.
constexpr size_t kMaxSteps = size_t{64} << 20;
/// Packings that a search remembers.
constexpr size_t kKnown = 16;

/// Indices of the ranges in the order of their first steps.
std::vector<uint32_t> byFirstStep(std::span<const LiveRange> ranges) {
  std::vector<uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return ranges[a].first < ranges[b].first; });
  return order;
}

/// Pairs of ranges that are live at the same time, or nothing if there are more than kMaxPairs.
std::optional<std::vector<std::pair<uint32_t, uint32_t>>> collisions(std::span<const LiveRange> ranges) {
  const std::vector<uint32_t> order = byFirstStep(ranges);
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (size_t a = 0; a < order.size(); ++a) {
    for (size_t b = a + 1; b < order.size() && ranges[order[b]].first <= ranges[order[a]].last; ++b) {
      if (pairs.size() == kMaxPairs) return std::nullopt;
      pairs.emplace_back(order[a], order[b]);
    }
  }
  return pairs;
}

Packing swept(std::span<const LiveRange> ranges, int64_t alignment) {
  std::vector<TimedBlock> blocks;
  blocks.reserve(ranges.size());
  for (const LiveRange& range : ranges) blocks.push_back({range.bytes, range.first, range.last});
  SweepPacking packing = sweepPacking(blocks, alignment);
  return {std::move(packing.addresses), packing.bytes};
}

/// Which ranges can collide, and sizes rounded to the alignment.
class Placer {
 public:
  Placer(std::span<const LiveRange> ranges, std::span<const std::pair<uint32_t, uint32_t>> pairs,
         int64_t alignment)
      : begins_(ranges.size() + 1, 0), neighbours_(2 * pairs.size()) {
    for (const LiveRange& range : ranges) sizes_.push_back(roundUp(range.bytes, alignment));
    for (const auto& [a, b] : pairs) {
      ++begins_[a + 1];
      ++begins_[b + 1];
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
    for (const auto& [a, b] : pairs) {
      neighbours_[next[a]++] = b;
      neighbours_[next[b]++] = a;
    }
  }

  /// Places the buffers in the order of `plan`: at the lowest free address or, for those placed from the top,
  /// at the highest one under `ceiling` (if they fit there). Stops as soon as more than `most` bytes are
  /// taken.
  Packing place(const Plan& plan, int64_t ceiling, int64_t most) {
    Packing packing;
    packing.addresses.assign(sizes_.size(), -1);
    for (const size_t i : plan.order) {
      taken_.clear();
      for (size_t k = begins_[i]; k < begins_[i + 1]; ++k) {
        const uint32_t j = neighbours_[k];
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
      if (packing.bytes > most) break;
    }
    return packing;
  }

  int64_t size(size_t i) const { return sizes_[i]; }

 private:
  std::vector<int64_t> sizes_;
  std::vector<size_t> begins_;        // of each range's part of neighbours_
  std::vector<uint32_t> neighbours_;  // ranges with which it must not overlap in memory
  std::vector<std::pair<int64_t, int64_t>> taken_;
};

/// A small linear congruential generator, for the same packing on every machine.
class Random {
 public:
  size_t below(size_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<size_t>((state_ >> 33) % n);
  }

 private:
  uint64_t state_ = 0x9e3779b97f4a7c15ull;
};

/// pack(), which subtracts the cost of its attempts from `steps`.
Packing packWithin(std::span<const LiveRange> ranges, int64_t target, int attempts, int64_t alignment,
                   size_t& steps) {
  if (ranges.empty()) return {};
  const auto pairs = collisions(ranges);
  if (!pairs) return swept(ranges, alignment);
  Placer placer(ranges, *pairs, alignment);
  const size_t stepsEach = pairs->size() + ranges.size();
  const size_t placements = std::min(kMaxSteps, steps) / stepsEach;
  attempts = static_cast<int>(std::min(static_cast<size_t>(attempts), placements));
  const int64_t enough = std::max(packingLowerBound(ranges, alignment), target);
  std::vector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto duration = [&](size_t i) { return int64_t{ranges[i].last} - ranges[i].first + 1; };
  Plan best;
  Packing bestPacking;
  const auto consider = [&](const Plan& plan) {
    const int64_t most = best.order.empty() ? std::numeric_limits<int64_t>::max() : bestPacking.bytes;
    Packing packing = placer.place(plan, enough, most);
    if (!best.order.empty() && packing.bytes >= bestPacking.bytes) return;
    bestPacking = std::move(packing);
    best = plan;
  };
  const auto sorted = [&](auto key) {
    Plan plan{order, std::vector<bool>(ranges.size(), false)};
    std::stable_sort(plan.order.begin(), plan.order.end(),
                     [&](size_t a, size_t b) { return key(a) > key(b); });
    consider(plan);
    // Buffers that follow each other in time alternate between bottom and top, so that a chain packs without
    // a gap.
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
  size_t placed = 0;
  for (int attempt = 0; attempt < attempts && placed < placements && bestPacking.bytes > enough;
       ++attempt, ++placed) {
    Plan candidate = current;
    // Swap a buffer that reaches the top of the memory with another one; sometimes flip the end at which a
    // buffer is placed, and often swap a second pair.
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
    Packing packing = placer.place(candidate, enough, bestPacking.bytes);
    if (packing.bytes > bestPacking.bytes) continue;
    if (packing.bytes < bestPacking.bytes) attempt = std::max(0, attempt - attempts / 4);
    bestPacking = std::move(packing);
    current = std::move(candidate);
  }
  steps -= placed * stepsEach;
  return bestPacking;
}

}  // namespace

int64_t packingLowerBound(std::span<const LiveRange> ranges, int64_t alignment) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // step, bytes that become live or die
  changes.reserve(2 * ranges.size());
  for (const LiveRange& range : ranges) {
    if (range.last < range.first) continue;
    const int64_t bytes = roundUp(range.bytes, alignment);
    changes.emplace_back(range.first, bytes);
    changes.emplace_back(int64_t{range.last} + 1, -bytes);
  }
  std::sort(changes.begin(), changes.end());  // at each step, dying bytes come before new ones
  int64_t bound = 0, live = 0;
  for (const auto& [step, bytes] : changes) {
    live += bytes;
    bound = std::max(bound, live);
  }
  return bound;
}

Packing pack(std::span<const LiveRange> ranges, int64_t target, int attempts, int64_t alignment) {
  size_t steps = kMaxSteps;
  return packWithin(ranges, target, attempts, alignment, steps);
}

Packing Packer::pack(std::span<const LiveRange> ranges, int64_t target, int attempts) {
  for (const Known& known : known_) {
    if (known.target == target && known.attempts == attempts && std::ranges::equal(known.ranges, ranges))
      return known.packing;
  }
  Packing packing = packWithin(ranges, target, attempts, 16, steps_);
  if (known_.size() == kKnown) known_.erase(known_.begin());
  known_.push_back({{ranges.begin(), ranges.end()}, target, attempts, packing});
  return packing;
}

}  // namespace carina::compiler
