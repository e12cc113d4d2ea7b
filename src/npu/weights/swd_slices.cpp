// SPDX-License-Identifier: Apache-2.0
// Slice planning by dynamic programming, and the chunked bit format of a slice.
#include "npu/weights/swd_slices.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "base/check.hpp"

namespace carina::npu::swd {
namespace {

constexpr int kLanes = 16;  // index codes, padded for vector units
constexpr uint32_t kMaxSliceWeights = 32767;
constexpr int kWeightPositions = 12;
constexpr uint32_t kMaxRunQuotientCost = 1u << 22;
/// A palette of 32 entries in front of all folded values.
constexpr uint32_t kIndices = kFoldedValues + 32;

/// Eight of the sixteen lanes.
using Half = int16_t __attribute__((vector_size(16)));

Half least(Half a, Half b) {
  return a < b ? a : b;
}

int32_t least(Half a) {
  a = least(a, __builtin_shufflevector(a, a, 4, 5, 6, 7, 0, 1, 2, 3));
  a = least(a, __builtin_shufflevector(a, a, 2, 3, 0, 1, 6, 7, 4, 5));
  return std::min(a[0], a[1]);
}

/// A bit for each lane of two comparisons' results.
uint16_t maskOf(Half low, Half high) {
#if defined(__SSE2__)
  return static_cast<uint16_t>(__builtin_ia32_pmovmskb128(__builtin_ia32_packsswb128(low, high)));
#else
  uint32_t mask = 0;
  for (size_t lane = 0; lane < 8; ++lane)
    mask |= (low[lane] != 0 ? 1u : 0u) << lane | (high[lane] != 0 ? 1u : 0u) << (lane + 8);
  return static_cast<uint16_t>(mask);
#endif
}

/// A number for every code, in two vectors of eight: sums of them are what the search spends its time on.
struct Lanes {
  Half half[2];

  int16_t operator[](size_t lane) const { return half[lane / 8][lane % 8]; }
  void set(size_t lane, uint32_t bits) { half[lane / 8][lane % 8] = static_cast<int16_t>(bits); }
  void add(const Lanes& other) {
    half[0] += other.half[0];
    half[1] += other.half[1];
  }
};

/// What every index costs under each code, the raw one left out: that depends on the palette.
const std::array<Lanes, kIndices>& unaryCosts() {
  static const std::array<Lanes, kIndices> table = [] {
    std::array<Lanes, kIndices> costs;
    for (uint32_t index = 0; index < kIndices; ++index) {
      for (int code = 0; code < kLanes; ++code) {
        costs[index].set(static_cast<size_t>(code),
                         code < kIndexCodes - 1 ? indexBits(index, indexCode(code), 0) : kUncodable);
      }
    }
    return costs;
  }();
  return table;
}

std::vector<Lanes> costTable(const CodedSection& section) {
  const auto rawBits = static_cast<uint32_t>(section.code.palette.rawBits());
  const auto entries = static_cast<uint32_t>(section.code.palette.entries.size());
  uint32_t highest = 0;
  for (const uint16_t index : section.indices) highest = std::max<uint32_t>(highest, index);
  CARINA_CHECK(highest < kIndices, "every coded weight has an index");
  std::vector<Lanes> table(unaryCosts().begin(), unaryCosts().begin() + highest + 1);
  // With entries, raw indices reach the palette only.
  const uint32_t rawEnd = entries > 0 ? entries : 1u << rawBits;
  for (uint32_t index = 0; index < std::min(rawEnd, highest + 1); ++index)
    table[index].set(kIndexCodes - 1, rawBits);
  return table;
}

uint32_t runBits(uint32_t run, int mode) {
  return std::min((run >> mode) + 1 + static_cast<uint32_t>(mode), kMaxRunQuotientCost);
}

/// Group size: finer where few weights make every bit count.
size_t groupSize(size_t weights) {
  return weights <= 512 ? 1 : weights <= 2048 ? 4 : 16;
}

/// State of the search: index code `lane` with zero run mode `mode` is mode * kLanes + lane.
template <int kModes>
class StateSearch {
 public:
  StateSearch(const CodedSection& section, const std::vector<Lanes>& table, size_t group)
      : section_(section),
        table_(table),
        group_(group),
        groups_((section.indices.size() + group - 1) / group) {}

  /// The states of all groups with the smallest total.
  std::vector<uint8_t> run() {
    best_.resize(groups_);
    switched_ = std::make_unique_for_overwrite<std::array<uint16_t, kModes>[]>(groups_);
    for (Lanes& cost : cost_) cost = kLane;
    for (size_t g = 0; g < groups_; ++g) step(g);
    std::vector<uint8_t> path(groups_);
    size_t state = groups_ > 0 ? best_[groups_ - 1] : 0;
    for (size_t g = groups_; g-- > 0;) {
      path[g] = static_cast<uint8_t>(state);
      if (switched_[g][state / kLanes] >> state % kLanes & 1) state = best_[g - 1];
    }
    return path;
  }

 private:
  /// Costs carry the number of their lane in the lowest bits: the smallest of them tells its lane, too, and
  /// of equal costs the first lane's is the smallest.
  static constexpr int kLaneBits = 4;
  static constexpr int16_t kLaneMask = (1 << kLaneBits) - 1;
  static_assert(kLanes == 1 << kLaneBits);
  static constexpr Lanes kLane{{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}};

  /// A state may be entered from the cheapest one before this group, for a slice header and the padding of a
  /// chunk.
  static constexpr int16_t kSwitchBits = kSliceHeaderBits + 6 + (kModes > 1 ? 5 : 0);
  /// A group costs less than this under the best code, and what is dearer than the best by more than a switch
  /// is entered anew: what a group costs may be cut to it.
  static constexpr int16_t kMostGroupBits = 1000;
  static_assert((kSwitchBits + 2 * kMostGroupBits + 1) << kLaneBits <= INT16_MAX);

  /// Bits of the group's zero runs under every mode, beyond the cheapest one's. The run before the first
  /// weight counts with the first group.
  std::array<int16_t, kModes> runCosts(size_t g, size_t begin, size_t end) const {
    const size_t from = g == 0 ? 0 : begin + 1;
    std::array<uint32_t, kModes> quotients{};
    for (size_t n = from; n <= end; ++n) {
      const uint32_t run = std::min(section_.runs[n], kMaxRunQuotientCost);
      for (size_t mode = 0; mode < kModes; ++mode) quotients[mode] += run >> mode;
    }
    std::array<uint32_t, kModes> sums{};
    for (size_t mode = 0; mode < kModes; ++mode)
      sums[mode] = quotients[mode] + static_cast<uint32_t>((end + 1 - from) * (mode + 1));
    const uint32_t low = *std::min_element(sums.begin(), sums.end());
    std::array<int16_t, kModes> costs;
    for (size_t mode = 0; mode < kModes; ++mode) {
      costs[mode] = static_cast<int16_t>(std::min<uint32_t>(sums[mode] - low, kMostGroupBits));
    }
    return costs;
  }

  /// Costs are kept relative to the cheapest state's.
  void step(size_t g) {
    const size_t begin = g * group_, end = std::min(section_.indices.size(), begin + group_);
    Lanes sums{};
    for (size_t n = begin; n < end; ++n) sums.add(table_[section_.indices[n]]);
    std::array<int16_t, kModes> runs{};
    if constexpr (kModes > 1) runs = runCosts(g, begin, end);
    int32_t low = INT32_MAX;
    size_t cheapest = 0;
    for (size_t mode = 0; mode < kModes; ++mode) {
      Half switched[2] = {};
      for (size_t h = 0; h < 2; ++h) {
        Half& cost = cost_[mode].half[h];
        const Half entered = kLane.half[h] + static_cast<int16_t>(kSwitchBits << kLaneBits);
        if (g > 0) switched[h] = cost > entered;
        const Half bits = least(sums.half[h], Half{} + kMostGroupBits) + runs[mode];
        cost = (g == 0 ? cost : least(cost, entered)) + (bits << kLaneBits);
      }
      switched_[g][mode] = maskOf(switched[0], switched[1]);
      const int32_t lowest = least(least(cost_[mode].half[0], cost_[mode].half[1]));
      if ((lowest | kLaneMask) < low) {
        low = lowest & ~kLaneMask;
        cheapest = mode * kLanes + static_cast<size_t>(lowest & kLaneMask);
      }
    }
    best_[g] = static_cast<uint8_t>(cheapest);
    for (Lanes& cost : cost_) {
      for (Half& half : cost.half) half -= static_cast<int16_t>(low);
    }
  }

  const CodedSection& section_;
  const std::vector<Lanes>& table_;
  size_t group_, groups_;
  std::array<Lanes, kModes> cost_{};
  std::vector<uint8_t> best_;  // cheapest state at the end of each group
  // States entered from the best before, a bit for each lane.
  std::unique_ptr<std::array<uint16_t, kModes>[]> switched_;
};

std::vector<uint8_t> bestStates(const CodedSection& section, const std::vector<Lanes>& table, size_t group) {
  return section.code.zeroRuns ? StateSearch<kZeroRunModes>(section, table, group).run()
                               : StateSearch<1>(section, table, group).run();
}

/// The cut between two parameter sets, moved to where the sum on both sides is least.
size_t bestCut(const CodedSection& section, const std::vector<Lanes>& table, int before, int after,
               size_t cut, size_t low, size_t high) {
  const auto bits = [&](size_t n, int state) {
    int64_t sum = table[section.indices[n]][static_cast<size_t>(state % kLanes)];
    if (section.code.zeroRuns) sum += runBits(section.runs[n + 1], state / kLanes);
    return sum;
  };
  int64_t balance = 0, best = 0;
  size_t at = cut;
  for (size_t n = cut; n < high; ++n) {  // weights move from the right slice to the left one
    balance += bits(n, before) - bits(n, after);
    if (balance < best) best = balance, at = n + 1;
  }
  balance = 0;
  for (size_t n = cut; n > low; --n) {
    balance += bits(n - 1, after) - bits(n - 1, before);
    if (balance < best) best = balance, at = n - 1;
  }
  return at;
}

/// No plan takes fewer bits: one slice, with every index and every run in the code that is best for it.
uint64_t leastBits(const CodedSection& section, const std::vector<Lanes>& table) {
  std::vector<uint16_t> cheapest(table.size());
  for (size_t index = 0; index < table.size(); ++index)
    cheapest[index] = static_cast<uint16_t>(least(least(table[index].half[0], table[index].half[1])));
  uint64_t bits = kSliceHeaderBits;
  for (const uint16_t index : section.indices) bits += cheapest[index];
  for (const uint32_t run : section.runs) {
    uint32_t low = UINT32_MAX;
    for (int mode = 0; mode < kZeroRunModes; ++mode)
      low = std::min(low, (run >> mode) + 1 + static_cast<uint32_t>(mode));
    bits += low;
  }
  return bits;
}

uint64_t chunked(uint64_t bits, uint64_t chunk) {
  return (bits + chunk - 1) / chunk * chunk;
}

uint64_t sliceBits(const CodedSection& section, const Slice& slice, bool first) {
  uint64_t bits = kSliceHeaderBits;
  const int rawBits = section.code.palette.rawBits();
  const uint64_t weights = slice.end - slice.begin;
  uint64_t positions = 0, rest = 0;
  if (slice.indexCode.divisor == 7) {
    rest = weights * static_cast<uint64_t>(rawBits);
  } else {
    // A quotient takes a position for every two, and one bit besides for each position that is not the empty
    // last one.
    for (uint32_t n = slice.begin; n < slice.end; ++n) {
      const uint32_t quotient = uint32_t{section.indices[n]} >> slice.indexCode.divisor;
      positions += quotient / 2;
      rest += (quotient + 1) / 2;
    }
    positions = slice.indexCode.truncated ? weights : positions + weights;
    rest += weights * static_cast<uint64_t>(slice.indexCode.divisor);
  }
  bits += chunked(positions, kWeightPositions) + rest;
  if (section.code.zeroRuns) {
    uint64_t unary = 0;
    const uint32_t from = first ? 0 : slice.begin + 1;
    for (uint32_t n = from; n <= slice.end; ++n) unary += (section.runs[n] >> slice.zeroRunMode) + 1;
    bits += chunked(unary, slice.zeroRunMode == 3 ? 8 : 12) +
            uint64_t{slice.end + 1 - from} * static_cast<uint64_t>(slice.zeroRunMode);
  }
  return bits;
}

/// Unary part of the weights of one chunk.
struct WeightUnary {
  uint32_t unary0 = 0, unary1 = 0;
  int unary1Count = 0;
};

class SliceWriter {
 public:
  SliceWriter(const CodedSection& section, const Slice& slice, bool newPalette, BitWriter& out)
      : section_(section), slice_(slice), out_(out), newPalette_(newPalette) {}

  void write() {
    const bool zeroRuns = section_.code.zeroRuns, raw = slice_.indexCode.divisor == 7;
    header();
    const int remainderBits = raw ? section_.code.palette.rawBits() : slice_.indexCode.divisor;
    const uint32_t rawPositions = remainderBits > 5 ? 8 : 12;
    const int runWidth = slice_.zeroRunMode == 3 ? 8 : 12;
    const uint32_t weights = slice_.end - slice_.begin;
    const uint32_t firstRun = newPalette_ ? 0 : slice_.begin + 1;
    const uint32_t runs = zeroRuns ? slice_.end + 1 - firstRun : 0;
    const uint16_t* indices = section_.indices.data() + slice_.begin;
    const uint32_t* runValues = zeroRuns ? section_.runs.data() + firstRun : nullptr;
    uint32_t w = 0, z = 0, wLeft = weights > 0 && !raw ? indices[0] >> slice_.indexCode.divisor : 0;
    uint32_t zLeft = runs > 0 ? runValues[0] >> slice_.zeroRunMode : 0;
    uint32_t wBefore = 0, zBefore = 0;  // completed before this chunk, remainders not yet written
    for (;;) {
      const int64_t balance = zeroRuns ? int64_t{w} - z : 0;
      const bool weightsOn = w < weights && balance < 8, runsOn = zeroRuns && z < runs && balance >= 0;
      const uint32_t wStart = w, zStart = z;
      WeightUnary unary;
      if (weightsOn) {
        if (raw) {
          w = std::min(weights, w + rawPositions);
        } else {
          unary = takeWeights(indices, weights, w, wLeft);
          out_.put(unary.unary0, kWeightPositions);
        }
      }
      if (runsOn) out_.put(takeRuns(runValues, runs, z, zLeft, runWidth), runWidth);
      if (unary.unary1Count > 0) out_.put(unary.unary1, unary.unary1Count);
      if (remainderBits > 0) putRemainders(indices + wBefore, wStart - wBefore, remainderBits);
      if (slice_.zeroRunMode > 0) putRemainders(runValues + zBefore, zStart - zBefore, slice_.zeroRunMode);
      wBefore = wStart;
      zBefore = zStart;
      if (!weightsOn && !runsOn) break;
    }
  }

 private:
  /// The lowest bits of each number; four at a time where they fit together.
  template <typename T>
  void putRemainders(const T* values, uint32_t count, int bits) {
    const uint32_t mask = (1u << bits) - 1;
    uint32_t n = 0;
    for (; bits <= 8 && n + 4 <= count; n += 4) {
      const uint32_t first = (values[n] & mask) | (values[n + 1] & mask) << bits;
      const uint32_t second = (values[n + 2] & mask) | (values[n + 3] & mask) << bits;
      out_.put(first | uint64_t{second} << 2 * bits, 4 * bits);
    }
    for (; n < count; ++n) out_.put(values[n] & mask, bits);
  }

  void header() {
    const PaletteChoice& palette = section_.code.palette;
    out_.put(section_.code.zeroRuns ? static_cast<uint32_t>(slice_.zeroRunMode) : 6u, 3);
    out_.put(slice_.end - slice_.begin - 1, 15);
    out_.put(static_cast<uint32_t>(slice_.indexCode.divisor), 3);
    out_.put(slice_.indexCode.truncated ? 1 : 0, 1);
    out_.put(newPalette_ ? 1 : 0, 1);
    if (!newPalette_) return;
    out_.put(static_cast<uint32_t>(palette.directOffset), 5);
    out_.put(palette.entries.empty() ? 0 : palette.entries.size() - 1, 5);
    out_.put(static_cast<uint32_t>(palette.bits - 2), 3);
    for (const uint16_t entry : palette.entries) out_.put(entry, palette.bits);
  }

  /// The unary parts of the next weights, as far as they fit. Each position but the last of a weight takes
  /// two off its quotient; a truncated code has one position.
  WeightUnary takeWeights(const uint16_t* indices, uint32_t weights, uint32_t& w, uint32_t& left) const {
    WeightUnary unary;
    for (int position = 0; position < kWeightPositions && w < weights;) {
      if (slice_.indexCode.truncated) {
        unary.unary0 |= static_cast<uint32_t>(left > 0) << position;
        unary.unary1 |= static_cast<uint32_t>(left > 1) << unary.unary1Count;
        unary.unary1Count += left > 0 ? 1 : 0;
        ++position;
      } else {
        const int room = kWeightPositions - position;
        if (left / 2 >= static_cast<uint32_t>(room)) {  // goes on in the next chunk
          unary.unary0 |= ((1u << room) - 1) << position;
          unary.unary1 |= ((1u << room) - 1) << unary.unary1Count;
          unary.unary1Count += room;
          left -= 2 * static_cast<uint32_t>(room);
          break;
        }
        const uint32_t pairs = left / 2, ones = (1u << pairs) - 1, odd = left & 1;
        unary.unary0 |= (ones | odd << pairs) << position;
        unary.unary1 |= ones << unary.unary1Count;
        unary.unary1Count += static_cast<int>(pairs + odd);
        position += static_cast<int>(pairs) + 1;
      }
      ++w;
      left = w < weights ? indices[w] >> slice_.indexCode.divisor : 0;
    }
    return unary;
  }

  uint32_t takeRuns(const uint32_t* values, uint32_t runs, uint32_t& z, uint32_t& left, int width) const {
    uint32_t unary = 0;
    for (int position = 0; position < width && z < runs;) {
      const auto ones = static_cast<int>(std::min(left, static_cast<uint32_t>(width - position)));
      unary |= ((1u << ones) - 1) << position;
      position += ones;
      left -= static_cast<uint32_t>(ones);
      if (position < width) {  // the zero that ends the run
        ++position;
        ++z;
        left = z < runs ? values[z] >> slice_.zeroRunMode : 0;
      }
    }
    return unary;
  }

  const CodedSection& section_;
  const Slice& slice_;
  BitWriter& out_;
  bool newPalette_;
};

}  // namespace

CodedSection codeSection(std::span<const uint16_t> folded, SectionCode code) {
  std::vector<uint16_t> copy(folded.begin(), folded.end());
  CodedSection section = codeSectionInPlace(copy, std::move(code));
  section.own = std::move(copy);  // where the indices lie stays where it is
  return section;
}

CodedSection codeSectionInPlace(std::span<uint16_t> folded, SectionCode code) {
  CodedSection section;
  section.code = std::move(code);
  std::array<uint16_t, kFoldedValues> indexOf;
  section.code.palette.indices(indexOf);
  if (!section.code.zeroRuns) {
    for (uint16_t& value : folded) value = indexOf[value];
    section.indices = folded;
    return section;
  }
  size_t count = 0;
  uint32_t run = 0;
  for (const uint16_t value : folded) {
    if (value == 0) {
      ++run;
      continue;
    }
    folded[count++] = indexOf[value];
    section.runs.push_back(run);
    run = 0;
  }
  if (count == 0 && run > 0) {  // a slice has at least one coded weight
    folded[count++] = indexOf[0];
    section.runs.push_back(0);
    --run;
  }
  section.runs.push_back(run);
  section.indices = folded.first(count);
  return section;
}

std::optional<SlicePlan> planSlices(const CodedSection& section, uint64_t limit) {
  SlicePlan plan;
  const size_t weights = section.indices.size();
  CARINA_CHECK(weights > 0, "a section has at least one coded weight");
  const std::vector<Lanes> table = costTable(section);
  const auto definition = static_cast<uint64_t>(section.code.palette.definitionBits());
  if (definition + leastBits(section, table) >= limit) return std::nullopt;
  const size_t group = groupSize(weights);
  const std::vector<uint8_t> states = bestStates(section, table, group);
  size_t begin = 0;
  for (size_t g = 0; g < states.size();) {
    const int state = states[g];
    size_t next = g;
    while (next < states.size() && states[next] == state) ++next;
    size_t end = std::min(weights, next * group);
    if (next < states.size() && group > 1) {
      end = bestCut(section, table, state, states[next], end, std::max(begin + 1, end - group),
                    std::min(weights, end + group) - 1);
    }
    for (size_t at = begin; at < end; at += kMaxSliceWeights) {
      plan.slices.push_back({static_cast<uint32_t>(at),
                             static_cast<uint32_t>(std::min<size_t>(end, at + kMaxSliceWeights)),
                             indexCode(state % kLanes), state / kLanes});
    }
    begin = end;
    g = next;
  }
  plan.bits = definition;
  for (const Slice& slice : plan.slices) plan.bits += sliceBits(section, slice, slice.begin == 0);
  if (plan.bits >= limit) return std::nullopt;
  return plan;
}

void writeSection(const CodedSection& section, std::span<const Slice> slices, BitWriter& out) {
  for (const Slice& slice : slices) SliceWriter(section, slice, slice.begin == 0, out).write();
}

}  // namespace carina::npu::swd
