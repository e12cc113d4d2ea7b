// SPDX-License-Identifier: Apache-2.0
// Arena packing (allocator.hpp): a search over the order in which buffers are placed or, for many buffers,
// one sweep over time; then buffers around those that are placed too high are moved.
#include "compiler/schedule/allocator.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/shape.hpp"
#include "base/sweep_packing.hpp"
#include "compiler/schedule/placement_search.hpp"

namespace carina::compiler {
namespace {

/// Placement costs at least one step per pair of buffers that are live at the same time. Beyond this many
/// pairs (some 720 buffers that are always live) a packing takes seconds, and one sweep over time has to do.
constexpr size_t kMaxPairs = size_t{1} << 18;
/// Limit on the steps of all attempts together: a network of a thousand operations gets the usual 2,000
/// attempts.
constexpr size_t kMaxSteps = size_t{64} << 20, kStepsEach = size_t{1} << 16;
/// Packings that a search remembers.
constexpr size_t kKnown = 16;
/// Swaps among more buffers than this rarely move one that is placed too high, and among very many never.
constexpr size_t kManyBuffers = 256, kVeryManyBuffers = 4096;

/// A buffer is live for long if it is during this part of the time: an eighth.
constexpr int64_t kPartOfTime = 8;

Packing swept(std::span<const LiveRange> ranges, int64_t alignment) {
  std::vector<TimedBlock> blocks;
  blocks.reserve(ranges.size());
  for (const LiveRange& range : ranges) blocks.push_back({range.bytes, range.first, range.last});
  SweepPacking packing = sweepPacking(blocks, alignment);
  return {std::move(packing.addresses), packing.bytes};
}

/// Improves a packing of many buffers: where buffers end above `enough`, all buffers of a short time around
/// them are placed anew, while those that are also live before or after that time stay in their places.
class Repair {
 public:
  Repair(std::span<const LiveRange> ranges, int64_t enough, int64_t alignment, Packing& packing)
      : ranges_(ranges), enough_(enough), alignment_(alignment), packing_(packing), order_(ranges.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return ranges[a].first < ranges[b].first; });
    int32_t last = std::numeric_limits<int32_t>::min();
    for (const size_t i : order_) lastSoFar_.push_back(last = std::max(last, ranges[i].last));
  }

  /// `partly`: whether it is worth lowering some buffers if others stay too high.
  void run(int attempts, bool partly, size_t& steps) {
    attempts = std::min(attempts, kMostAttempts);
    for (const LiveRange& time : timesAbove()) {
      bool goesOn = true;
      for (const int32_t around : {1, 4, 16}) {
        goesOn = goesOn && !isSolved(time, steps) &&
                 place({0, time.first - around, time.last + around}, attempts, steps);
      }
      if (goesOn && !isSolved(time, steps)) place(lifetimesDuring(time, steps), attempts, steps);
      if (!partly && !isSolved(time, steps)) break;
    }
    packing_.bytes = 0;
    for (size_t i = 0; i < ranges_.size(); ++i) packing_.bytes = std::max(packing_.bytes, end(i));
  }

 private:
  // There are many times, and few buffers in each.
  static constexpr int kMostAttempts = 100;
  static constexpr size_t kMostMoved = 1024;

  int64_t end(size_t i) const { return packing_.addresses[i] + roundUp(ranges_[i].bytes, alignment_); }

  /// The times in which some buffer ends above `enough_`.
  std::vector<LiveRange> timesAbove() const {
    std::vector<LiveRange> times;
    for (const size_t i : order_) {
      if (end(i) <= enough_) continue;
      if (times.empty() || ranges_[i].first > times.back().last + 1) times.push_back(ranges_[i]);
      times.back().last = std::max(times.back().last, ranges_[i].last);
    }
    return times;
  }

  /// Buffers that are live during this time.
  std::vector<size_t> liveDuring(const LiveRange& time, size_t& steps) const {
    auto at = static_cast<size_t>(
        std::upper_bound(order_.begin(), order_.end(), time.last,
                         [&](int32_t last, size_t i) { return last < ranges_[i].first; }) -
        order_.begin());
    std::vector<size_t> live;
    for (; at > 0 && lastSoFar_[at - 1] >= time.first && steps > 0; --at, --steps) {
      if (ranges_[order_[at - 1]].last >= time.first) live.push_back(order_[at - 1]);
    }
    return live;
  }

  /// From the first to the last step of all buffers that are live during this time, apart from those that are
  /// live for long.
  LiveRange lifetimesDuring(const LiveRange& time, size_t& steps) const {
    const int64_t most = (int64_t{lastSoFar_.back()} - ranges_[order_.front()].first) / kPartOfTime;
    LiveRange all = time;
    for (const size_t i : liveDuring(time, steps)) {
      if (ranges_[i].last - int64_t{ranges_[i].first} >= most) continue;
      all.first = std::min(all.first, ranges_[i].first);
      all.last = std::max(all.last, ranges_[i].last);
    }
    return all;
  }

  bool isSolved(const LiveRange& time, size_t& steps) const {
    const std::vector<size_t> live = liveDuring(time, steps);
    return std::all_of(live.begin(), live.end(), [&](size_t i) { return end(i) <= enough_; });
  }

  /// Places the buffers that are only live during this time anew, if that lowers the highest one. False if
  /// there are too many, or no steps are left.
  bool place(const LiveRange& time, int attempts, size_t& steps) {
    const std::vector<size_t> live = liveDuring(time, steps);
    if (steps == 0 || live.empty() || live.size() > kMostMoved) return false;
    std::vector<LiveRange> ranges;
    std::vector<int64_t> fixed;
    int64_t highest = 0;
    for (const size_t i : live) {
      const bool inside = time.first <= ranges_[i].first && ranges_[i].last <= time.last;
      ranges.push_back(ranges_[i]);
      fixed.push_back(inside ? -1 : packing_.addresses[i]);
      if (inside) highest = std::max(highest, end(i));
    }
    const auto collisions = collisionsOf(ranges, kMaxPairs);
    if (!collisions) return false;
    const PlacementProblem problem{ranges, *collisions, fixed, alignment_};
    const size_t most = steps / problem.steps();
    size_t placements = most;
    const Packing better = searchPlacement(problem, enough_, attempts, placements);
    steps -= (most - placements) * problem.steps();
    if (better.bytes < highest) {
      for (size_t k = 0; k < live.size(); ++k) packing_.addresses[live[k]] = better.addresses[k];
    }
    return most > 0;
  }

  std::span<const LiveRange> ranges_;
  const int64_t enough_, alignment_;
  Packing& packing_;
  std::vector<size_t> order_;  // by first step
  std::vector<int32_t> lastSoFar_;
};

/// Indices of ranges that are live for long, and of the others.
std::pair<std::vector<size_t>, std::vector<size_t>> byDuration(std::span<const LiveRange> ranges) {
  int64_t first = std::numeric_limits<int32_t>::max(), last = std::numeric_limits<int32_t>::min();
  for (const LiveRange& range : ranges) {
    first = std::min<int64_t>(first, range.first);
    last = std::max<int64_t>(last, range.last);
  }
  std::vector<size_t> longest, others;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const int64_t duration = int64_t{ranges[i].last} - ranges[i].first + 1;
    (duration > (last - first) / kPartOfTime ? longest : others).push_back(i);
  }
  return {std::move(longest), std::move(others)};
}

/// Settings of a packing: see pack(). The costs of attempts are subtracted from `steps`.
struct Effort {
  int attempts = 0;
  int64_t alignment = 16;
  size_t& steps;
};

/// Places all buffers in the best order found, or in one sweep if there are too many.
Packing placed(std::span<const LiveRange> ranges, int64_t enough, const Effort& effort) {
  const auto collisions = collisionsOf(ranges, kMaxPairs);
  if (!collisions) return swept(ranges, effort.alignment);
  const PlacementProblem problem{ranges, *collisions, {}, effort.alignment};
  const size_t most = std::min(kMaxSteps, effort.steps) / problem.steps();
  size_t placements = most;
  const size_t attempts = std::min<size_t>(effort.attempts, most);
  Packing packing = searchPlacement(problem, enough, static_cast<int>(attempts), placements);
  effort.steps -= (most - placements) * problem.steps();
  return packing;
}

/// Places the buffers that are live for long at the bottom and the others above them; nothing if there are
/// only some of one kind. Small buffers that are live all the time, in between, would divide the memory.
std::optional<Packing> placedApart(std::span<const LiveRange> ranges, int64_t enough, const Effort& effort) {
  const auto [longest, others] = byDuration(ranges);
  if (longest.empty() || others.empty()) return std::nullopt;
  Packing apart{std::vector<int64_t>(ranges.size()), 0};
  for (const std::vector<size_t>& some : {longest, others}) {
    std::vector<LiveRange> part;
    part.reserve(some.size());
    for (const size_t i : some) part.push_back(ranges[i]);
    const Packing packing = placed(part, enough - apart.bytes, effort);
    for (size_t k = 0; k < some.size(); ++k) apart.addresses[some[k]] = apart.bytes + packing.addresses[k];
    apart.bytes += packing.bytes;
  }
  return apart;
}

Packing packWithin(std::span<const LiveRange> ranges, int64_t target, const Effort& effort) {
  if (ranges.empty()) return {};
  const int64_t enough =
      std::max(packingLowerBound(ranges, effort.alignment), target / effort.alignment * effort.alignment);
  if (effort.attempts == 0 || ranges.size() <= kManyBuffers) return placed(ranges, enough, effort);
  const Effort once{0, effort.alignment, effort.steps};
  Packing best = placed(ranges, enough, once);
  const auto repair = [&](Packing packing) {
    Repair(ranges, enough, effort.alignment, packing).run(effort.attempts, target == 0, effort.steps);
    if (packing.bytes < best.bytes) best = std::move(packing);
  };
  if (best.bytes > enough) repair(best);
  if (best.bytes > enough) {
    if (auto apart = placedApart(ranges, enough, once)) repair(std::move(*apart));
  }
  if (best.bytes > enough && ranges.size() <= kVeryManyBuffers) {
    Packing searched = placed(ranges, enough, effort);
    if (searched.bytes < best.bytes) best = std::move(searched);
  }
  return best;
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
  size_t steps = std::min(kMaxSteps, static_cast<size_t>(attempts) * kStepsEach);
  return packWithin(ranges, target, {attempts, alignment, steps});
}

Packing Packer::pack(std::span<const LiveRange> ranges, int64_t target, int attempts) {
  for (const Known& known : known_) {
    if (known.target == target && known.attempts == attempts && std::ranges::equal(known.ranges, ranges))
      return known.packing;
  }
  Packing packing = packWithin(ranges, target, {attempts, 16, steps_});
  if (known_.size() == kKnown) known_.erase(known_.begin());
  known_.push_back({{ranges.begin(), ranges.end()}, target, attempts, packing});
  return packing;
}

}  // namespace carina::compiler
