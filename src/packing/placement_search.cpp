// SPDX-License-Identifier: Apache-2.0
#include "packing/placement_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/shape.hpp"
#include "packing/random.hpp"

namespace carina {
namespace {

/// The order in which buffers are placed, and which of them are put at the top.
struct Plan {
  std::vector<size_t> order;
  std::vector<bool> fromTop;
};

/// Which ranges can collide, and sizes rounded to the alignment.
class Placer {
 public:
  explicit Placer(const PlacementProblem& problem)
      : ranges_(problem.ranges),
        dense_(isDense(problem)),
        begins_(problem.ranges.size() + 1, 0),
        neighbours_(2 * problem.collisions.size()) {
    for (const LiveRange& range : problem.ranges) sizes_.push_back(roundUp(range.bytes, problem.alignment));
    for (const auto& [a, b] : problem.collisions) {
      ++begins_[a + 1];
      ++begins_[b + 1];
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
    for (const auto& [a, b] : problem.collisions) {
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
    placed_.clear();
    for (const size_t i : plan.order) {
      if (dense_) {
        collectPlaced(i);
      } else {
        collectNeighbours(i, packing);
      }
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
      if (dense_) addPlaced(i, address);
    }
    return packing;
  }

  int64_t size(size_t i) const { return sizes_[i]; }

 private:
  struct Placed {
    int64_t address, end;
    int32_t first, last;
  };

  /// Whether it is faster to look at all buffers that have been placed than to sort those that collide.
  static bool isDense(const PlacementProblem& problem) {
    constexpr size_t kSortingSteps = 8;  // per collision
    return problem.ranges.size() * problem.ranges.size() / 2 <= kSortingSteps * 2 * problem.collisions.size();
  }

  /// What buffer i must not overlap, in the order of addresses: from all buffers in that order.
  void collectPlaced(size_t i) {
    taken_.clear();
    for (const Placed& placed : placed_) {
      if (placed.first <= ranges_[i].last && ranges_[i].first <= placed.last)
        taken_.emplace_back(placed.address, placed.end);
    }
  }

  void addPlaced(size_t i, int64_t address) {
    if (sizes_[i] == 0) return;
    const auto after = std::upper_bound(placed_.begin(), placed_.end(), address,
                                        [](int64_t a, const Placed& placed) { return a < placed.address; });
    placed_.insert(after, {address, address + sizes_[i], ranges_[i].first, ranges_[i].last});
  }

  /// The same from those that collide with it.
  void collectNeighbours(size_t i, const Packing& packing) {
    taken_.clear();
    for (size_t k = begins_[i]; k < begins_[i + 1]; ++k) {
      const uint32_t j = neighbours_[k];
      if (packing.addresses[j] >= 0 && sizes_[j] > 0)
        taken_.emplace_back(packing.addresses[j], packing.addresses[j] + sizes_[j]);
    }
    std::sort(taken_.begin(), taken_.end());
  }

  std::span<const LiveRange> ranges_;
  const bool dense_;
  std::vector<int64_t> sizes_;
  std::vector<size_t> begins_;        // of each range's part of neighbours_
  std::vector<uint32_t> neighbours_;  // ranges with which it must not overlap in memory
  std::vector<Placed> placed_;        // by address
  std::vector<std::pair<int64_t, int64_t>> taken_;
};

class Search {
 public:
  Search(const PlacementProblem& problem, int64_t enough)
      : ranges_(problem.ranges), enough_(enough), placer_(problem), order_(problem.ranges.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
  }

  Packing run(int attempts, size_t& placements, const Packing* start) {
    const auto duration = [&](size_t i) { return int64_t{ranges_[i].last} - ranges_[i].first + 1; };
    if (start != nullptr) {
      // At the lowest free addresses in the order of their addresses, buffers end no higher.
      consider(sortedBy([&](size_t i) { return -start->addresses[i]; }));
    } else {
      considerSorted([&](size_t i) { return placer_.size(i); });
      considerSorted([&](size_t i) { return areaOf({placer_.size(i), ranges_[i].first, ranges_[i].last}); });
      considerSorted(duration);
      considerSorted([&](size_t i) { return -int64_t{ranges_[i].first}; });
    }
    improve(attempts, placements);
    return std::move(packing_);
  }

 private:
  void consider(const Plan& plan) {
    const int64_t most = best_.order.empty() ? std::numeric_limits<int64_t>::max() : packing_.bytes;
    Packing packing = placer_.place(plan, enough_, most);
    if (!best_.order.empty() && packing.bytes >= packing_.bytes) return;
    packing_ = std::move(packing);
    best_ = plan;
  }

  /// Those with the largest key first, at the bottom.
  template <typename Key>
  Plan sortedBy(Key key) const {
    Plan plan{order_, std::vector<bool>(ranges_.size(), false)};
    std::stable_sort(plan.order.begin(), plan.order.end(),
                     [&](size_t a, size_t b) { return key(a) > key(b); });
    return plan;
  }

  template <typename Key>
  void considerSorted(Key key) {
    Plan plan = sortedBy(key);
    consider(plan);
    // Buffers that follow each other in time alternate between bottom and top, so that a chain packs without
    // a gap.
    std::vector<size_t> byTime = order_;
    std::stable_sort(byTime.begin(), byTime.end(),
                     [&](size_t a, size_t b) { return ranges_[a].first < ranges_[b].first; });
    for (size_t turn = 0; turn < byTime.size(); ++turn) plan.fromTop[byTime[turn]] = turn % 2 != 0;
    consider(plan);
  }

  void improve(int attempts, size_t& placements) {
    Random random;
    Plan current = best_;
    for (int attempt = 0; attempt < attempts && placements > 0 && packing_.bytes > enough_;
         ++attempt, --placements) {
      Plan candidate = current;
      // Swap a buffer that reaches the top of the memory with another one; sometimes flip the end at which a
      // buffer is placed, and often swap a second pair.
      std::vector<size_t> tops;
      for (size_t turn = 0; turn < candidate.order.size(); ++turn) {
        const size_t i = candidate.order[turn];
        if (packing_.addresses[i] + placer_.size(i) == packing_.bytes) tops.push_back(turn);
      }
      const size_t from = tops.empty() ? random.below(order_.size()) : tops[random.below(tops.size())];
      if (random.below(4) == 0) {
        const size_t i = candidate.order[random.below(order_.size())];
        candidate.fromTop[i] = !candidate.fromTop[i];
      }
      std::swap(candidate.order[from], candidate.order[random.below(order_.size())]);
      if (attempt % 3 != 0)
        std::swap(candidate.order[random.below(order_.size())], candidate.order[random.below(order_.size())]);
      Packing packing = placer_.place(candidate, enough_, packing_.bytes);
      if (packing.bytes > packing_.bytes) continue;
      if (packing.bytes < packing_.bytes) attempt = std::max(0, attempt - attempts / 4);
      packing_ = std::move(packing);
      current = std::move(candidate);
    }
  }

  std::span<const LiveRange> ranges_;
  const int64_t enough_;
  Placer placer_;
  std::vector<size_t> order_;  // all indices
  Plan best_;
  Packing packing_;
};

}  // namespace

std::optional<Collisions> collisionsOf(std::span<const LiveRange> ranges, size_t most) {
  std::vector<uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return ranges[a].first < ranges[b].first; });
  Collisions pairs;
  for (size_t a = 0; a < order.size(); ++a) {
    for (size_t b = a + 1; b < order.size() && ranges[order[b]].first <= ranges[order[a]].last; ++b) {
      if (pairs.size() == most) return std::nullopt;
      pairs.emplace_back(order[a], order[b]);
    }
  }
  return pairs;
}

Packing searchPlacement(const PlacementProblem& problem, int64_t enough, int attempts, size_t& placements,
                        const Packing* start) {
  return Search(problem, enough).run(attempts, placements, start);
}

}  // namespace carina
