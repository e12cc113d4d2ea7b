// SPDX-License-Identifier: Apache-2.0
// Addresses of a schedule's buffers (scheduler.hpp).
#include <algorithm>

#include "compiler/search/scheduler.hpp"

namespace carina::compiler {
namespace {

/// Attempts to find a dense packing: for the program, and for a try that does not fit at once.
constexpr int kPackingAttempts = 2000, kTryAttempts = 100;

/// Maps are moved behind the cache in at most so many rounds, and only if few buffers end above it.
constexpr int kEvictingRounds = 4;
constexpr size_t kFewAbove = 64;

}  // namespace

Status Scheduler::allocate(Allocation how) {
  const bool trying = how == Allocation::Try;
  addStaging();
  // If the arena may use more memory for copies of weights, its last percent does not matter.
  const bool exact = mode().spilling() || shortOfMemory() || result_.staging.empty();
  const int attempts = trying ? 0 : exact ? kPackingAttempts : kPackingAttempts / 8;
  for (int round = 0;; ++round) {
    std::vector<Placement*> inArena, inCache;
    const auto sort = [&](Placement& placement) {
      if (placement.live.bytes == 0) return;
      if (placement.area == npu::Area::Arena) inArena.push_back(&placement);
      if (placement.area == npu::Area::Cache) inCache.push_back(&placement);
    };
    for (Placement& placement : result_.buffers) sort(placement);
    for (Placement& placement : result_.staging) sort(placement);
    for (Placement& placement : result_.homes) sort(placement);
    const int64_t limit = mode().spilling() ? cacheLimit(result_.machine, options_) : 0;
    // If there are other tries, one of them fits better than what would be left of this one.
    const bool mayEvict = how == Allocation::Final && !limits_.ahead;
    if (limit > 0 && mayEvict && evictBeyond(limit)) continue;
    result_.arenaBytes = place(inArena, options_.arenaLimit, attempts, trying);
    if (trying && options_.arenaLimit > 0 && result_.arenaBytes > options_.arenaLimit)
      result_.arenaBytes = place(inArena, options_.arenaLimit, kTryAttempts, trying);
    result_.cacheBytes = place(inCache, limit, attempts, trying);
    if (trying && limit > 0 && result_.cacheBytes > limit)
      result_.cacheBytes = place(inCache, limit, kTryAttempts, trying);
    if (limit == 0 || result_.cacheBytes <= limit) break;
    if (how == Allocation::Evicting && round < kEvictingRounds && evictAbove(limit)) continue;
    if (!mayEvict || !evict()) {
      return fail(Code::DoesNotFit, "staged weights need {} bytes of fast memory, {} has {}",
                  result_.cacheBytes, mode().name, limit)
          .withRemedy("choose a memory mode with a larger cache");
    }
  }
  int64_t behind = roundUp(result_.arenaBytes, 16);
  for (size_t b = 0; b < result_.buffers.size(); ++b) {
    if (!isOutside(b)) continue;
    result_.buffers[b].address = behind;
    behind += roundUp(result_.buffers[b].bytes, 16);
  }
  for (Placement& placement : result_.buffers) {
    if (placement.takesOver < 0) continue;
    const Placement& root = result_.buffers[static_cast<size_t>(placement.takesOver)];
    placement.area = root.area;
    placement.address = root.address;
  }
  return {};
}

std::vector<Placement*> Scheduler::cachedMaps() {
  std::vector<Placement*> cached;
  for (Placement& placement : result_.buffers) {
    if (placement.area == npu::Area::Cache && placement.live.bytes > 0) cached.push_back(&placement);
  }
  std::stable_sort(cached.begin(), cached.end(),
                   [](const Placement* a, const Placement* b) { return a->bytes > b->bytes; });
  return cached;
}

bool Scheduler::evictBeyond(int64_t limit) {
  const std::vector<Placement*> maps = cachedMaps();
  std::vector<LiveRange> others;
  for (const Placement& placement : result_.staging) {
    if (placement.area == npu::Area::Cache && placement.live.bytes > 0) others.push_back(placement.live);
  }
  const auto fitsWithout = [&](size_t evicted) {
    std::vector<LiveRange> left = others;
    for (size_t i = evicted; i < maps.size(); ++i) left.push_back(maps[i]->live);
    return packingLowerBound(left) <= limit;
  };
  // The fewest that must be evicted: evicting more never increases what the rest needs.
  size_t low = 0, high = maps.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (fitsWithout(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  for (size_t i = 0; i < low; ++i) evict(*maps[i]);
  return low > 0;
}

bool Scheduler::evict() {
  const std::vector<Placement*> maps = cachedMaps();
  if (maps.empty()) return false;
  evict(*maps.front());
  return true;
}

bool Scheduler::evictAbove(int64_t limit) {
  std::vector<Placement> above;
  const auto add = [&](const Placement& placement) {
    const int64_t end = placement.address + roundUp(placement.live.bytes, 16);
    if (placement.area == npu::Area::Cache && placement.live.bytes > 0 && end > limit)
      above.push_back(placement);
  };
  for (const Placement& placement : result_.staging) add(placement);
  for (const Placement& placement : result_.buffers) add(placement);
  if (above.size() > kFewAbove) return false;
  const std::vector<Placement*> maps = cachedMaps();
  bool evicted = false;
  for (const Placement& placement : above) {
    const int64_t excess = placement.address + roundUp(placement.live.bytes, 16) - limit;
    // The smallest map that makes enough space, else the largest.
    Placement* best = nullptr;
    for (Placement* map : maps) {
      if (map->area != npu::Area::Cache || !map->live.overlaps(placement.live)) continue;
      if (!best || map->live.bytes >= excess) best = map;
    }
    if (!best) continue;
    evict(*best);
    evicted = true;
  }
  return evicted;
}

int64_t Scheduler::place(const std::vector<Placement*>& placements, int64_t target, int attempts,
                         bool trying) const {
  std::vector<LiveRange> ranges;
  ranges.reserve(placements.size());
  for (const Placement* placement : placements) ranges.push_back(placement->live);
  Packing packing = trying ? pack(ranges, target, attempts) : packer_->pack(ranges, target, attempts);
  if (!trying && target > 0 && packing.bytes > target) {
    // The packer may have no steps left for what the try has found.
    Packing again = pack(ranges, target, kTryAttempts);
    if (again.bytes < packing.bytes) packing = std::move(again);
  }
  for (size_t i = 0; i < placements.size(); ++i) placements[i]->address = packing.addresses[i];
  return packing.bytes;
}

}  // namespace carina::compiler
