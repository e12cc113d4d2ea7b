// SPDX-License-Identifier: Apache-2.0
#include "packing/skyline_packing.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "base/shape.hpp"
#include "packing/random.hpp"

namespace carina {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

/// Which of the buffers that fit is placed.
struct Preference {
  enum class Order : uint8_t { Longest, Earliest, Latest, Largest } order;
  /// Buffers that fill the whole width come first, or also those that touch either end.
  enum class Ends : uint8_t { Ignored, Both, Any } ends;
};

constexpr Preference kPreferences[] = {{Preference::Order::Largest, Preference::Ends::Both},
                                       {Preference::Order::Earliest, Preference::Ends::Ignored},
                                       {Preference::Order::Latest, Preference::Ends::Ignored},
                                       {Preference::Order::Largest, Preference::Ends::Any},
                                       {Preference::Order::Longest, Preference::Ends::Ignored}};

/// The buffers that are not yet placed, by their first step, in a tree: each node knows the best rank and the
/// last steps below it.
class Unplaced {
 public:
  /// `order`: all buffers, best first.
  Unplaced(std::span<const LiveRange> ranges, std::span<const size_t> order) : ranges_(ranges) {
    byFirst_.assign(order.begin(), order.end());
    std::stable_sort(byFirst_.begin(), byFirst_.end(),
                     [&](size_t a, size_t b) { return ranges[a].first < ranges[b].first; });
    std::vector<size_t> rank(ranges.size());
    for (size_t k = 0; k < order.size(); ++k) rank[order[k]] = k;
    leaves_ = std::bit_ceil(std::max<size_t>(byFirst_.size(), 1));
    nodes_.resize(2 * leaves_);
    for (size_t k = 0; k < byFirst_.size(); ++k) {
      const int32_t last = ranges[byFirst_[k]].last;
      nodes_[leaves_ + k] = {rank[byFirst_[k]], last, last};
    }
    for (size_t n = leaves_ - 1; n > 0; --n) update(n);
  }

  /// The position of the best buffer whose first step is in [firstFrom, firstTo] and whose last step is in
  /// [lastFrom, lastTo], or kNone.
  size_t best(int32_t firstFrom, int32_t firstTo, int32_t lastFrom, int32_t lastTo) const {
    Query query{positionOf(firstFrom), positionOf(int64_t{firstTo} + 1), lastFrom, lastTo};
    search(query, 1, 0, leaves_);
    return query.position;
  }
  /// The one of two positions with the better rank.
  size_t better(size_t a, size_t b) const {
    if (a == kNone || b == kNone) return a == kNone ? b : a;
    return nodes_[leaves_ + a].rank < nodes_[leaves_ + b].rank ? a : b;
  }

  size_t bufferAt(size_t position) const { return byFirst_[position]; }
  void remove(size_t position) {
    size_t n = leaves_ + position;
    nodes_[n] = {};
    while ((n /= 2) > 0) update(n);
  }

 private:
  struct Node {
    size_t rank = kNone;
    int32_t earliest = std::numeric_limits<int32_t>::max();  // of the last steps
    int32_t latest = std::numeric_limits<int32_t>::min();
  };
  struct Query {
    size_t from, to;  // positions
    int32_t lastFrom, lastTo;
    size_t position = kNone, rank = kNone;
  };

  void update(size_t n) {
    const Node &a = nodes_[2 * n], &b = nodes_[2 * n + 1];
    nodes_[n] = {std::min(a.rank, b.rank), std::min(a.earliest, b.earliest), std::max(a.latest, b.latest)};
  }

  size_t positionOf(int64_t first) const {
    const auto at = std::partition_point(byFirst_.begin(), byFirst_.end(),
                                         [&](size_t i) { return ranges_[i].first < first; });
    return static_cast<size_t>(at - byFirst_.begin());
  }

  /// `n`: the node of the positions [begin, end).
  void search(Query& query, size_t n, size_t begin, size_t end) const {
    const Node& node = nodes_[n];
    if (node.rank >= query.rank || begin >= query.to || end <= query.from) return;
    if (node.earliest > query.lastTo || node.latest < query.lastFrom) return;
    if (n >= leaves_) {
      query.position = begin;
      query.rank = node.rank;
      return;
    }
    const size_t middle = begin + (end - begin) / 2;
    const bool rightFirst = nodes_[2 * n + 1].rank < nodes_[2 * n].rank;
    if (rightFirst) search(query, 2 * n + 1, middle, end);
    search(query, 2 * n, begin, middle);
    if (!rightFirst) search(query, 2 * n + 1, middle, end);
  }

  std::span<const LiveRange> ranges_;
  std::vector<size_t> byFirst_;  // position: index of a buffer
  size_t leaves_ = 1;
  std::vector<Node> nodes_;  // the root is 1, the children of n are 2 n and 2 n + 1
};

/// The heights reached so far, as segments of time.
class Skyline {
 public:
  struct Segment {
    int32_t first, last;
    int64_t height;
  };

  Skyline(int32_t first, int32_t last) { set({first, last, 0}); }

  /// The earliest of the lowest segments.
  Segment lowest() {
    for (;; queue_.pop()) {
      const auto [height, first] = queue_.top();
      const auto found = segments_.find(first);
      if (found != segments_.end() && found->second.height == height) return found->second;
    }
  }

  /// Raises the steps [first, last] of a segment to `height`.
  void raise(const Segment& segment, int32_t first, int32_t last, int64_t height) {
    Segment raised{first, last, height};
    if (segment.first < first) set({segment.first, first - 1, segment.height});
    if (last < segment.last) set({last + 1, segment.last, segment.height});
    const auto after = segments_.find(last + 1);
    if (after != segments_.end() && after->second.height == height) {
      raised.last = after->second.last;
      segments_.erase(after);
    }
    const auto at = segments_.lower_bound(first);
    if (at != segments_.begin()) {
      const Segment before = std::prev(at)->second;
      if (before.height == height) {
        raised.first = before.first;
        segments_.erase(first);
      }
    }
    set(raised);
  }

  /// Raises a segment to its lower neighbour.
  void fill(const Segment& segment) {
    const auto at = segments_.find(segment.first);
    int64_t height = std::numeric_limits<int64_t>::max();
    if (at != segments_.begin()) height = std::prev(at)->second.height;
    if (const auto after = std::next(at); after != segments_.end())
      height = std::min(height, after->second.height);
    raise(segment, segment.first, segment.last, height);
  }

 private:
  void set(const Segment& segment) {
    segments_.insert_or_assign(segment.first, segment);
    queue_.emplace(segment.height, segment.first);
  }

  using Entry = std::pair<int64_t, int32_t>;                              // height, first step
  std::map<int32_t, Segment> segments_;                                   // by first step
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;  // also of segments that are gone
};

class SkylinePacker {
 public:
  SkylinePacker(std::span<const LiveRange> ranges, int64_t alignment)
      : ranges_(ranges), alignment_(alignment) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (ranges[i].last < ranges[i].first) continue;
      live_.push_back(i);
      first_ = std::min(first_, ranges[i].first);
      last_ = std::max(last_, ranges[i].last);
    }
  }

  /// Nothing unless it needs less than `below` bytes. `noise`: how far the preference varies, in 1024ths.
  std::optional<Packing> pack(const Preference& preference, int64_t below, size_t noise) {
    Packing packing{std::vector<int64_t>(ranges_.size(), 0), 0};
    if (live_.empty()) return std::nullopt;
    Unplaced unplaced(ranges_, ordered(preference.order, noise));
    Skyline skyline(first_, last_);
    for (size_t left = live_.size(); left > 0;) {
      const Skyline::Segment gap = skyline.lowest();
      const size_t position = choose(unplaced, gap, preference.ends);
      if (position == kNone) {
        skyline.fill(gap);
        continue;
      }
      const size_t i = unplaced.bufferAt(position);
      unplaced.remove(position);
      const int64_t end = gap.height + roundUp(ranges_[i].bytes, alignment_);
      packing.addresses[i] = gap.height;
      packing.bytes = std::max(packing.bytes, end);
      if (packing.bytes >= below) return std::nullopt;
      skyline.raise(gap, ranges_[i].first, ranges_[i].last, end);
      --left;
    }
    return packing;
  }

 private:
  /// What `order` prefers has the smallest key.
  std::pair<int64_t, int64_t> keyOf(size_t i, Preference::Order order) const {
    const LiveRange& range = ranges_[i];
    const int64_t duration = int64_t{range.last} - range.first + 1;
    switch (order) {
      case Preference::Order::Longest:
        return {-duration, -range.bytes};
      case Preference::Order::Earliest:
        return {int64_t{range.first} - first_, -range.bytes};
      case Preference::Order::Latest:
        return {int64_t{last_} - range.last, -range.bytes};
      case Preference::Order::Largest:
        break;
    }
    return {-range.bytes * duration, -duration};
  }

  std::vector<size_t> ordered(Preference::Order order, size_t noise) {
    std::vector<std::pair<int64_t, int64_t>> keys(ranges_.size());
    for (const size_t i : live_) {
      keys[i] = keyOf(i, order);
      int64_t& key = keys[i].first;
      if (noise == 0) continue;
      const auto more = static_cast<int64_t>(random_.below(noise));
      key += key / 1024 * more + key % 1024 * more / 1024;
    }
    std::vector<size_t> sorted = live_;
    std::stable_sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
    return sorted;
  }

  /// The position of the buffer to place in a gap, or kNone.
  static size_t choose(const Unplaced& unplaced, const Skyline::Segment& gap, Preference::Ends ends) {
    const auto [first, last, height] = gap;
    if (ends != Preference::Ends::Ignored) {
      const size_t both = unplaced.best(first, first, last, last);
      if (both != kNone) return both;
    }
    if (ends == Preference::Ends::Any) {
      const size_t either =
          unplaced.better(unplaced.best(first, first, first, last), unplaced.best(first, last, last, last));
      if (either != kNone) return either;
    }
    return unplaced.best(first, last, first, last);
  }

  std::span<const LiveRange> ranges_;
  const int64_t alignment_;
  Random random_;
  std::vector<size_t> live_;
  int32_t first_ = std::numeric_limits<int32_t>::max(), last_ = std::numeric_limits<int32_t>::min();
};

}  // namespace

std::optional<Packing> packOnSkyline(std::span<const LiveRange> ranges, int64_t enough, int64_t below,
                                     int64_t alignment, size_t& variations) {
  constexpr size_t kPlain = std::size(kPreferences);
  constexpr size_t kNoise[] = {204, 512, 1024, 3072};
  SkylinePacker packer(ranges, alignment);
  std::optional<Packing> best;
  const auto consider = [&](size_t attempt, size_t noise) {
    auto packing = packer.pack(kPreferences[attempt % kPlain], best ? best->bytes : below, noise);
    if (packing) best = std::move(packing);
  };
  const auto unsolved = [&] { return !best || best->bytes > enough; };
  for (size_t attempt = 0; attempt < kPlain && unsolved(); ++attempt) consider(attempt, 0);
  for (size_t attempt = 0; variations > 0 && unsolved(); ++attempt, --variations)
    consider(attempt, kNoise[attempt % std::size(kNoise)]);
  return best;
}

}  // namespace carina
