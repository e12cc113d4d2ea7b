// SPDX-License-Identifier: Apache-2.0
#include "packing/skyline_packing.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
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
  explicit Unplaced(std::span<const LiveRange> ranges) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (ranges[i].first <= ranges[i].last) byFirst_.push_back(i);
    }
    std::stable_sort(byFirst_.begin(), byFirst_.end(),
                     [&](size_t a, size_t b) { return ranges[a].first < ranges[b].first; });
    leaves_ = std::bit_ceil(std::max<size_t>(byFirst_.size(), 1));
    nodes_.resize(2 * leaves_);
    for (size_t k = 0; k < byFirst_.size(); ++k) {
      const LiveRange& range = ranges[byFirst_[k]];
      firstSteps_.push_back(range.first);
      nodes_[leaves_ + k] = {0, range.last, range.last};
    }
  }

  /// All buffers, by their first step.
  std::span<const size_t> buffers() const { return byFirst_; }

  /// `ranks`: one per buffer, the best is 0.
  void rank(std::span<const uint32_t> ranks) {
    for (size_t k = 0; k < byFirst_.size(); ++k) nodes_[leaves_ + k].rank = ranks[byFirst_[k]];
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
  static constexpr uint32_t kGone = std::numeric_limits<uint32_t>::max();
  struct Node {
    uint32_t rank = kGone;
    int32_t earliest = std::numeric_limits<int32_t>::max();  // of the last steps
    int32_t latest = std::numeric_limits<int32_t>::min();
  };
  struct Query {
    size_t from, to;  // positions
    int32_t lastFrom, lastTo;
    size_t position = kNone;
    uint32_t rank = kGone;
  };

  void update(size_t n) {
    const Node &a = nodes_[2 * n], &b = nodes_[2 * n + 1];
    nodes_[n] = {std::min(a.rank, b.rank), std::min(a.earliest, b.earliest), std::max(a.latest, b.latest)};
  }

  size_t positionOf(int64_t first) const {
    return static_cast<size_t>(std::lower_bound(firstSteps_.begin(), firstSteps_.end(), first) -
                               firstSteps_.begin());
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

  std::vector<size_t> byFirst_;  // position: index of a buffer
  std::vector<int32_t> firstSteps_;
  size_t leaves_ = 1;
  std::vector<Node> nodes_;  // the root is 1, the children of n are 2 n and 2 n + 1
};

/// The heights reached so far, as segments of time in a list.
class Skyline {
 public:
  struct Segment {
    int32_t first, last;
    int64_t height;
    size_t before, after;  // kNone: there is none
  };

  Skyline(int32_t first, int32_t last) : segments_{{first, last, 0, kNone, kNone}} { push(0); }

  /// The earliest of the lowest segments.
  size_t lowest() {
    for (;; queue_.pop()) {
      const Entry& top = queue_.top();
      const Segment& segment = segments_[top.segment];
      if (segment.height == top.height && segment.first == top.first) return top.segment;
    }
  }
  const Segment& operator[](size_t segment) const { return segments_[segment]; }

  /// Raises the steps [first, last] of a segment to `height`.
  void raise(size_t index, int32_t first, int32_t last, int64_t height) {
    const Segment whole = segments_[index];
    if (whole.first < first) {
      link(whole.before, add({whole.first, first - 1, whole.height, kNone, kNone}), index);
    }
    if (last < whole.last) link(index, add({last + 1, whole.last, whole.height, kNone, kNone}), whole.after);
    Segment& raised = segments_[index];
    raised.first = first;
    raised.last = last;
    raised.height = height;
    if (raised.after != kNone && segments_[raised.after].height == height) {
      raised.last = segments_[raised.after].last;
      removeAfter(index);
    }
    if (raised.before != kNone && segments_[raised.before].height == height) {
      const size_t before = raised.before;
      segments_[before].last = raised.last;
      removeAfter(before);
    } else {
      push(index);
    }
  }

  /// Raises a segment to its lower neighbour.
  void fill(size_t index) {
    const Segment& segment = segments_[index];
    int64_t height = std::numeric_limits<int64_t>::max();
    for (const size_t neighbour : {segment.before, segment.after}) {
      if (neighbour != kNone) height = std::min(height, segments_[neighbour].height);
    }
    raise(index, segment.first, segment.last, height);
  }

 private:
  struct Entry {
    int64_t height;
    int32_t first;
    size_t segment;
    bool operator>(const Entry& other) const {
      return height != other.height ? height > other.height : first > other.first;
    }
  };

  void push(size_t index) { queue_.push({segments_[index].height, segments_[index].first, index}); }
  size_t add(const Segment& segment) {
    segments_.push_back(segment);
    push(segments_.size() - 1);
    return segments_.size() - 1;
  }
  void link(size_t before, size_t index, size_t after) {
    segments_[index].before = before;
    segments_[index].after = after;
    if (before != kNone) segments_[before].after = index;
    if (after != kNone) segments_[after].before = index;
  }
  void removeAfter(size_t index) {
    Segment& removed = segments_[segments_[index].after];
    segments_[index].after = removed.after;
    if (removed.after != kNone) segments_[removed.after].before = index;
    removed.height = -1;  // so that its entry does not match
  }

  std::vector<Segment> segments_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>>
      queue_;  // also of segments that have changed
};

class SkylinePacker {
 public:
  SkylinePacker(std::span<const LiveRange> ranges, int64_t alignment)
      : ranges_(ranges), alignment_(alignment), all_(ranges) {
    for (const size_t i : all_.buffers()) {
      first_ = std::min(first_, ranges[i].first);
      last_ = std::max(last_, ranges[i].last);
    }
  }

  /// Nothing unless it needs less than `below` bytes. `noise`: how far the preference varies, in 1024ths.
  std::optional<Packing> pack(const Preference& preference, int64_t below, size_t noise) {
    size_t left = all_.buffers().size();
    if (left == 0) return std::nullopt;
    Packing packing{std::vector<int64_t>(ranges_.size(), 0), 0};
    Unplaced unplaced = all_;
    unplaced.rank(ranks(preference.order, noise));
    Skyline skyline(first_, last_);
    while (left > 0) {
      const size_t lowest = skyline.lowest();
      const Skyline::Segment gap = skyline[lowest];
      const size_t position = choose(unplaced, gap, preference.ends);
      if (position == kNone) {
        skyline.fill(lowest);
        continue;
      }
      const size_t i = unplaced.bufferAt(position);
      unplaced.remove(position);
      const int64_t end = gap.height + roundUp(ranges_[i].bytes, alignment_);
      packing.addresses[i] = gap.height;
      packing.bytes = std::max(packing.bytes, end);
      if (packing.bytes >= below) return std::nullopt;
      skyline.raise(lowest, ranges_[i].first, ranges_[i].last, end);
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
    return {-areaOf(range), -duration};
  }

  std::vector<uint32_t> ranks(Preference::Order order, size_t noise) {
    std::vector<std::pair<int64_t, int64_t>> keys(ranges_.size());
    for (const size_t i : all_.buffers()) {
      keys[i] = keyOf(i, order);
      int64_t& key = keys[i].first;
      if (noise == 0) continue;
      const auto more = static_cast<int64_t>(random_.below(noise));
      key += key / 1024 * more + key % 1024 * more / 1024;
    }
    std::vector<size_t> sorted(all_.buffers().begin(), all_.buffers().end());
    std::stable_sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
    std::vector<uint32_t> ranks(ranges_.size());
    for (size_t k = 0; k < sorted.size(); ++k) ranks[sorted[k]] = static_cast<uint32_t>(k);
    return ranks;
  }

  /// The position of the buffer to place in a gap, or kNone.
  static size_t choose(const Unplaced& unplaced, const Skyline::Segment& gap, Preference::Ends ends) {
    const int32_t first = gap.first, last = gap.last;
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
  const Unplaced all_;
  Random random_;
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
