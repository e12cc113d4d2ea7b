// SPDX-License-Identifier: Apache-2.0
// Arena packing (packing.hpp): placement in several orders or, for very many buffers, in one sweep over
// time; then by best fit; then a search over the order.
#include "packing/packing.hpp"

#include <algorithm>
#include <optional>

#include "base/shape.hpp"
#include "packing/placement_search.hpp"
#include "packing/skyline_packing.hpp"
#include "packing/sweep_packing.hpp"

namespace carina {
namespace {

/// Placement costs at least one step per pair of buffers that are live at the same time. Beyond this many
/// pairs (some 720 buffers that are always live) a packing takes seconds, and one sweep over time has to do.
constexpr size_t kMaxPairs = size_t{1} << 18;
/// Limit on the steps of all attempts together: a network of a thousand operations gets the usual 2,000
/// attempts.
constexpr size_t kMaxSteps = size_t{64} << 20, kStepsEach = size_t{1} << 16;
/// Packings that a search remembers.
constexpr size_t kKnown = 16;
/// Among more buffers than this, swaps rarely move one that is placed too high.
constexpr size_t kManyBuffers = 4096;

/// Best-fit packings vary less often than the order in which buffers are placed: each costs as much as
/// several swaps, about so many steps per buffer.
constexpr int kSwapsPerVariation = 2;
constexpr size_t kStepsPerFit = 256, kMaxVariedSteps = size_t{2} << 20;

/// Settings of a packing: see pack(). The costs of attempts are subtracted from `steps`.
struct Effort {
  int attempts = 0;
  int64_t alignment = 16;
  size_t& steps;
};

/// Replaces a packing by the best fit, if that is denser.
void fitOnSkyline(std::span<const LiveRange> ranges, int64_t enough, const Effort& effort, Packing& packing) {
  if (effort.attempts == 0 && ranges.size() > kManyBuffers) return;
  const size_t steps = ranges.size() * kStepsPerFit;
  const size_t most =
      std::min<size_t>(effort.attempts / kSwapsPerVariation, std::min(effort.steps, kMaxVariedSteps) / steps);
  size_t variations = most;
  auto fitted = packOnSkyline(ranges, enough, packing.bytes, effort.alignment, variations);
  effort.steps -= (most - variations) * steps;
  if (fitted) packing = std::move(*fitted);
}

/// Improves a packing by swaps in the order in which the buffers are placed.
void swapOrder(const PlacementProblem& problem, int64_t enough, const Effort& effort, Packing& packing) {
  if (effort.attempts == 0 || problem.ranges.size() > kManyBuffers) return;
  const size_t most = std::min(kMaxSteps, effort.steps) / problem.steps();
  size_t placements = most;
  const auto attempts = static_cast<int>(std::min<size_t>(effort.attempts, most));
  packing = searchPlacement(problem, enough, attempts, placements, &packing);
  effort.steps -= (most - placements) * problem.steps();
}

Packing packWithin(std::span<const LiveRange> ranges, int64_t target, const Effort& effort) {
  if (ranges.empty()) return {};
  const int64_t enough =
      std::max(packingLowerBound(ranges, effort.alignment), target / effort.alignment * effort.alignment);
  const auto collisions = collisionsOf(ranges, kMaxPairs);
  if (!collisions) {
    Packing best = sweepPacking(ranges, effort.alignment);
    if (best.bytes > enough) fitOnSkyline(ranges, enough, effort, best);
    return best;
  }
  const PlacementProblem problem{ranges, *collisions, effort.alignment};
  size_t swaps = 0;
  Packing best = searchPlacement(problem, enough, 0, swaps);
  if (best.bytes > enough) fitOnSkyline(ranges, enough, effort, best);
  if (best.bytes > enough) swapOrder(problem, enough, effort, best);
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

}  // namespace carina
