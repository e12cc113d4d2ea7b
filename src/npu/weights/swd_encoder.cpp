// SPDX-License-Identifier: Apache-2.0
// Encodes weights as a standard weight stream. The stream is cut into sections (one palette each) by merging
// neighbouring windows as long as a common palette is cheaper than two; every section is then cut into slices
// (swd_slices.hpp).
#include <algorithm>
#include <bit>
#include <optional>
#include <queue>

#include "base/check.hpp"
#include "npu/weights/swd.hpp"
#include "npu/weights/swd_code.hpp"
#include "npu/weights/swd_slices.hpp"
#include "npu/weights/swd_writer.hpp"

namespace carina::npu {
namespace {

using namespace swd;

constexpr size_t kSwdAlignment = 16;
constexpr size_t kFineLimit = 65536;     // weights up to which section boundaries are worth fine-tuning
constexpr size_t kMaxFineSections = 16;  // sections up to which a single one for all is tried

/// Replaces the weights by their folded values.
std::span<uint16_t> foldAll(std::span<int16_t> weights) {
  uint32_t highest = 0;
  for (int16_t& weight : weights) {
    const uint32_t value = fold(weight);
    weight = static_cast<int16_t>(value);
    highest = std::max(highest, value);
  }
  CARINA_CHECK(highest < kFoldedValues, "weights are checked to lie in -255..255 before encoding");
  return {reinterpret_cast<uint16_t*>(weights.data()), weights.size()};
}

/// Compares all values without branches.
template <size_t kCount>
bool noZeros(const uint16_t* values) {
  uint16_t any = 0;
  for (size_t n = 0; n < kCount; ++n) any |= values[n] == 0 ? 1 : 0;
  return any == 0;
}

Statistics statisticsOf(std::span<const uint16_t> folded, uint32_t& run) {
  Statistics statistics;
  statistics.total = folded.size();
  // A second counter for each value makes the increments of equal neighbours independent.
  std::array<uint32_t, kFoldedValues> others{};
  size_t counted = 0;
  for (; counted + 2 <= folded.size(); counted += 2) {
    ++statistics.count[folded[counted]];
    ++others[folded[counted + 1]];
  }
  if (counted < folded.size()) ++others[folded[counted]];
  for (size_t n = 0; n < statistics.count.size(); ++n) statistics.count[n] += others[n];
  if (statistics.count[0] == 0 && run == 0) {
    statistics.runs = static_cast<uint32_t>(folded.size());
    return statistics;
  }
  statistics.runs = static_cast<uint32_t>(statistics.nonZero());
  constexpr size_t kBlock = 16;
  for (size_t n = 0; n < folded.size();) {
    if (run == 0 && n + kBlock <= folded.size() && noZeros<kBlock>(&folded[n])) {
      n += kBlock;
      continue;
    }
    for (const size_t end = std::min(folded.size(), n + kBlock); n < end; ++n) {
      if (folded[n] == 0) {
        ++run;
      } else if (run != 0) {
        for (int mode = 0; mode < kZeroRunModes; ++mode)
          statistics.quotients[static_cast<size_t>(mode)] += run >> mode;
        run = 0;
      }
    }
  }
  return statistics;
}

/// A sequence of windows that share a palette.
struct Segment {
  size_t begin = 0, end = 0;
  Statistics statistics;
  uint64_t bits = 0;
  int previous = -1, next = -1;
  uint32_t version = 0;  // merges so far; -1u: merged away
};

/// Merges neighbours while that saves bits, the best pair first.
std::vector<Segment> mergeSegments(std::vector<Segment> segments) {
  struct Merge {
    int64_t gain;
    int left, right;
    uint32_t leftVersion, rightVersion;
    uint64_t bits;
    bool operator<(const Merge& other) const { return gain < other.gain; }
  };
  std::priority_queue<Merge> queue;
  const auto consider = [&](int left, int right) {
    if (left < 0 || right < 0) return;
    const Segment &a = segments[static_cast<size_t>(left)], &b = segments[static_cast<size_t>(right)];
    Statistics both = a.statistics;
    both.add(b.statistics);
    const uint64_t bits = bestCode(both, Effort::Estimate).bits;
    const int64_t gain = static_cast<int64_t>(a.bits + b.bits) - static_cast<int64_t>(bits);
    if (gain >= 0) queue.push({gain, left, right, a.version, b.version, bits});
  };
  for (size_t n = 0; n + 1 < segments.size(); ++n) consider(static_cast<int>(n), static_cast<int>(n + 1));
  while (!queue.empty()) {
    const Merge merge = queue.top();
    queue.pop();
    Segment& a = segments[static_cast<size_t>(merge.left)];
    Segment& b = segments[static_cast<size_t>(merge.right)];
    if (a.version != merge.leftVersion || b.version != merge.rightVersion) continue;
    a.statistics.add(b.statistics);
    a.end = b.end;
    a.bits = merge.bits;
    ++a.version;
    a.next = b.next;
    b.version = UINT32_MAX;
    if (b.next >= 0) segments[static_cast<size_t>(b.next)].previous = merge.left;
    consider(a.previous, merge.left);
    consider(merge.left, a.next);
  }
  std::vector<Segment> merged;
  for (int n = segments.empty() ? -1 : 0; n >= 0; n = segments[static_cast<size_t>(n)].next) {
    merged.push_back(segments[static_cast<size_t>(n)]);
  }
  return merged;
}

/// Size of the windows of statistics from which sections are built.
size_t windowSize(size_t weights, CodingEffort effort) {
  const size_t windows = effort == CodingEffort::Low ? 4 : effort == CodingEffort::High ? 32 : 16;
  const size_t wanted = std::bit_floor(std::max<size_t>(weights / windows, 1));
  return std::clamp<size_t>(wanted, 64, effort == CodingEffort::High ? 1024 : 2048);
}

/// Number of codes of a section for which slices are planned.
size_t candidatesFor(size_t weights, CodingEffort effort) {
  if (effort == CodingEffort::Low) return 1;
  const size_t normal = weights <= 1024 ? 4 : weights <= 4096 ? 2 : 1;
  return effort == CodingEffort::High ? 4 * normal : normal;
}

/// Moves the boundaries between sections from window limits to the weight at which switching codes is
/// cheapest.
void refineBorders(std::span<const uint16_t> folded, std::vector<Segment>& segments, size_t window) {
  if (segments.size() < 2) return;
  std::vector<std::array<uint32_t, kFoldedValues>> costs;
  costs.reserve(segments.size());
  for (const Segment& segment : segments) {
    costs.push_back(valueCosts(bestCode(segment.statistics, Effort::Estimate), segment.statistics));
  }
  for (size_t n = 0; n + 1 < segments.size(); ++n) {
    Segment &left = segments[n], &right = segments[n + 1];
    const size_t low = std::max(left.begin + 1, left.end - std::min(left.end, window));
    const size_t high = std::min(right.end - 1, right.begin + window);
    int64_t balance = 0, best = 0;
    size_t cut = left.end;
    for (size_t at = left.end; at < high; ++at) {
      balance += int64_t{costs[n][folded[at]]} - costs[n + 1][folded[at]];
      if (balance < best) best = balance, cut = at + 1;
    }
    balance = 0;
    for (size_t at = left.end; at > low; --at) {
      balance += int64_t{costs[n + 1][folded[at - 1]]} - costs[n][folded[at - 1]];
      if (balance < best) best = balance, cut = at - 1;
    }
    left.end = right.begin = cut;
  }
  for (Segment& segment : segments) {
    uint32_t run = 0;
    segment.statistics = statisticsOf(folded.subspan(segment.begin, segment.end - segment.begin), run);
  }
}

struct PlannedSection {
  CodedSection section;
  SlicePlan plan;
};

/// The cheapest of a few plans; nothing if none takes less than `limit` bits.
std::optional<PlannedSection> planSection(std::span<const uint16_t> folded, const Statistics& statistics,
                                          uint64_t limit, CodingEffort effort) {
  const size_t candidates = candidatesFor(folded.size(), effort);
  std::optional<PlannedSection> best;
  for (SectionCode& code : candidateCodes(statistics, candidates)) {
    CodedSection section(folded, std::move(code));
    std::optional<SlicePlan> plan = planSlices(section, limit);
    if (!plan) continue;
    limit = plan->bits;
    best = PlannedSection{std::move(section), std::move(*plan)};
  }
  return best;
}

std::vector<PlannedSection> planStream(std::span<const uint16_t> folded, CodingEffort effort) {
  if (folded.empty()) return {};
  std::vector<Segment> segments;
  const size_t window = windowSize(folded.size(), effort);
  segments.reserve((folded.size() + window - 1) / window);
  uint32_t run = 0;
  for (size_t begin = 0; begin < folded.size(); begin += window) {
    Segment segment;
    segment.begin = begin;
    segment.end = std::min(folded.size(), begin + window);
    segment.statistics = statisticsOf(folded.subspan(begin, segment.end - begin), run);
    segment.bits = bestCode(segment.statistics, Effort::Estimate).bits;
    segment.previous = static_cast<int>(segments.size()) - 1;
    segment.next = segment.end < folded.size() ? static_cast<int>(segments.size()) + 1 : -1;
    segments.push_back(segment);
  }
  Statistics all;
  for (const Segment& segment : segments) all.add(segment.statistics);
  std::vector<Segment> merged = mergeSegments(std::move(segments));
  const bool fine =
      effort == CodingEffort::High || (effort == CodingEffort::Normal && folded.size() <= kFineLimit);
  if (fine) refineBorders(folded, merged, window);
  std::vector<PlannedSection> sections;
  uint64_t bits = 0;
  for (const Segment& segment : merged) {
    auto planned = planSection(folded.subspan(segment.begin, segment.end - segment.begin), segment.statistics,
                               UINT64_MAX, effort);
    CARINA_CHECK(planned.has_value(), "every section has a code that reaches all of its weights");
    bits += planned->plan.bits;
    sections.push_back(std::move(*planned));
  }
  // Slices adapt within a section, which the merging does not anticipate: one section may still be cheaper.
  if (effort != CodingEffort::Low && merged.size() > 1 && merged.size() <= kMaxFineSections) {
    if (auto whole = planSection(folded, all, bits + 1, effort)) {
      sections.clear();
      sections.push_back(std::move(*whole));
    }
  }
  return sections;
}

std::vector<uint8_t> encoded(std::span<const uint16_t> folded, CodingEffort effort) {
  const std::vector<PlannedSection> sections = planStream(folded, effort);
  uint64_t bits = 0;
  for (const PlannedSection& section : sections) bits += section.plan.bits;
  StreamWriter writer(bits);
  for (const PlannedSection& section : sections) writer.write(section.section, section.plan.slices);
  std::vector<uint8_t> bytes = writer.finish();
  bytes.resize((bytes.size() + kSwdAlignment - 1) / kSwdAlignment * kSwdAlignment, 0xff);
  return bytes;
}

}  // namespace

std::vector<uint8_t> encodeSwd(std::span<const int16_t> weights, CodingEffort effort) {
  std::vector<int16_t> copy(weights.begin(), weights.end());
  return encodeSwdInPlace(copy, effort);
}

std::vector<uint8_t> encodeSwdInPlace(std::span<int16_t> weights, CodingEffort effort) {
  const std::span<uint16_t> folded = foldAll(weights);
  if (effort != CodingEffort::High) return encoded(folded, effort);
  // Finer windows merge in another order, which is not always better.
  std::vector<uint8_t> normal = encoded(folded, CodingEffort::Normal), fine = encoded(folded, effort);
  return fine.size() < normal.size() ? std::move(fine) : std::move(normal);
}

}  // namespace carina::npu
