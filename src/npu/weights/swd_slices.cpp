// SPDX-License-Identifier: Apache-2.0
// Slice planning by dynamic programming.
#include "npu/weights/swd_slices.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "base/check.hpp"
#include "npu/weights/swd_kernels.hpp"

namespace carina::npu::swd {
namespace {

constexpr int kLanes = Lanes::kCount;
constexpr uint32_t kMaxSliceWeights = 32767;
constexpr uint32_t kMaxRunQuotientCost = 1u << 22;

using Half = Lanes::Half;

Half least(Half a, Half b) {
  return a < b ? a : b;
}

int32_t least(Half a) {
  a = least(a, __builtin_shufflevector(a, a, 4, 5, 6, 7, 0, 1, 2, 3));
  a = least(a, __builtin_shufflevector(a, a, 2, 3, 0, 1, 6, 7, 4, 5));
  return std::min(a[0], a[1]);
}

/// One bit per lane of the results of two comparisons.
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

/// Cost of every index under each code except raw, which depends on the palette.
const std::array<Lanes, kFoldedValues>& unaryCosts() {
  static const std::array<Lanes, kFoldedValues> table = [] {
    std::array<Lanes, kFoldedValues> costs;
    for (uint32_t index = 0; index < kFoldedValues; ++index) {
      for (int code = 0; code < kLanes; ++code) {
        costs[index].set(static_cast<size_t>(code),
                         code < kIndexCodes - 1 ? indexBits(index, indexCode(code), 0) : kUncodable);
      }
    }
    return costs;
  }();
  return table;
}

/// Cost of every folded value up to the highest that occurs.
std::vector<Lanes> costTable(const CodedSection& section) {
  const PaletteChoice& palette = section.code.palette;
  const auto rawBits = static_cast<uint32_t>(palette.rawBits());
  // With entries, raw indices cover only the palette.
  const uint32_t rawEnd =
      palette.entries.empty() ? 1u << rawBits : static_cast<uint32_t>(palette.entries.size());
  uint16_t highest = 0;
  for (const uint16_t value : section.values) highest = std::max(highest, value);
  std::vector<Lanes> table(size_t{highest} + 1);
  for (size_t value = 0; value < table.size(); ++value) {
    const uint16_t index = section.indexOf[value];
    if (index == kNoIndex) continue;
    table[value] = unaryCosts()[index];
    if (index < rawEnd) table[value].set(kIndexCodes - 1, rawBits);
  }
  return table;
}

uint32_t runBits(uint32_t run, int mode) {
  return std::min((run >> mode) + 1 + static_cast<uint32_t>(mode), kMaxRunQuotientCost);
}

/// Group size: finer for few weights, where every bit counts.
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
        groups_((section.values.size() + group - 1) / group) {}

  /// The states of all groups that minimize the total.
  std::vector<uint8_t> run() {
    best_.resize(groups_);
    switched_ = std::make_unique_for_overwrite<std::array<uint16_t, kModes>[]>(groups_);
    for (Lanes& cost : cost_) cost = kLane;
    constexpr size_t kAtOnce = 64;
    std::array<Lanes, kAtOnce> sums;
    for (size_t g = 0; g < groups_; g += kAtOnce) {
      const size_t end = std::min(groups_, g + kAtOnce);
      sumGroups(section_.values.subspan(g * group_), group_, table_.data(), std::span(sums).first(end - g));
      for (size_t k = g; k < end; ++k) step(k, sums[k - g]);
    }
    std::vector<uint8_t> path(groups_);
    size_t state = groups_ > 0 ? best_[groups_ - 1] : 0;
    for (size_t g = groups_; g-- > 0;) {
      path[g] = static_cast<uint8_t>(state);
      if (switched_[g][state / kLanes] >> state % kLanes & 1) state = best_[g - 1];
    }
    return path;
  }

 private:
  /// Costs carry the number of their lane in the lowest bits: the smallest one also identifies its lane, and
  /// the first lane wins ties.
  static constexpr int kLaneBits = 4;
  static constexpr int16_t kLaneMask = (1 << kLaneBits) - 1;
  static_assert(kLanes == 1 << kLaneBits);
  static constexpr Lanes kLane{{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}};

  /// A state may be entered from the cheapest one before this group, at the cost of a slice header and the
  /// padding of a chunk.
  static constexpr int16_t kSwitchBits = kSliceHeaderBits + 6 + (kModes > 1 ? 5 : 0);
  /// A group costs less than this under the best code, and a state that exceeds the best by more than a
  /// switch is entered anew: the cost of a group may be capped at this.
  static constexpr int16_t kMaxGroupBits = 1000;
  static_assert((kSwitchBits + 2 * kMaxGroupBits + 1) << kLaneBits <= INT16_MAX);

  /// Bits of the group's zero runs under every mode, in excess of the cheapest. The run before the first
  /// weight counts for the first group.
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
      costs[mode] = static_cast<int16_t>(std::min<uint32_t>(sums[mode] - low, kMaxGroupBits));
    }
    return costs;
  }

  /// `sums`: cost of the group's weights. Costs are kept relative to the cheapest state.
  void step(size_t g, const Lanes& sums) {
    const size_t begin = g * group_, end = std::min(section_.values.size(), begin + group_);
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
        const Half bits = least(sums.half[h], Half{} + kMaxGroupBits) + runs[mode];
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
  // States entered from the previous best, one bit per lane.
  std::unique_ptr<std::array<uint16_t, kModes>[]> switched_;
};

std::vector<uint8_t> bestStates(const CodedSection& section, const std::vector<Lanes>& table, size_t group) {
  return section.code.zeroRuns ? StateSearch<kZeroRunModes>(section, table, group).run()
                               : StateSearch<1>(section, table, group).run();
}

/// The cut between two parameter sets, moved to where the sum of both sides is smallest.
size_t bestCut(const CodedSection& section, const std::vector<Lanes>& table, int before, int after,
               size_t cut, size_t low, size_t high) {
  const auto bits = [&](size_t n, int state) {
    int64_t sum = table[section.values[n]][static_cast<size_t>(state % kLanes)];
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

/// Lower bound for all plans: one slice, with every index and every run in its best code.
uint64_t leastBits(const CodedSection& section, const std::vector<Lanes>& table) {
  std::vector<uint16_t> cheapest(table.size());
  for (size_t value = 0; value < table.size(); ++value)
    cheapest[value] = static_cast<uint16_t>(least(least(table[value].half[0], table[value].half[1])));
  uint64_t bits = kSliceHeaderBits;
  for (const uint16_t value : section.values) bits += cheapest[value];
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
  if (slice.indexCode.divisor == kRawDivisor) {
    rest = weights * static_cast<uint64_t>(rawBits);
  } else {
    uint32_t sum = 0, odd = 0, any = 0;
    for (uint32_t n = slice.begin; n < slice.end; ++n) {
      const uint32_t quotient = uint32_t{section.indexOf[section.values[n]]} >> slice.indexCode.divisor;
      sum += quotient;
      odd += quotient & 1;
      any |= quotient;
    }
    CARINA_CHECK(any <= kMaxQuotient, "every value of a slice has an index that its code reaches");
    // A quotient takes one position for every two, and one extra bit for each position except an empty last
    // one.
    positions = (sum - odd) / 2;
    rest = (sum + odd) / 2;
    positions = slice.indexCode.truncated ? weights : positions + weights;
    rest += weights * static_cast<uint64_t>(slice.indexCode.divisor);
  }
  bits += chunked(positions, kWeightPositions) + rest;
  if (section.code.zeroRuns) {
    uint64_t unary = 0;
    const uint32_t from = first ? 0 : slice.begin + 1;
    for (uint32_t n = from; n <= slice.end; ++n) unary += (section.runs[n] >> slice.zeroRunMode) + 1;
    bits += chunked(unary, static_cast<uint64_t>(runPositions(slice.zeroRunMode))) +
            uint64_t{slice.end + 1 - from} * static_cast<uint64_t>(slice.zeroRunMode);
  }
  return bits;
}

}  // namespace

CodedSection::CodedSection(std::span<const uint16_t> folded, SectionCode sectionCode)
    : code(std::move(sectionCode)), values(folded) {
  code.palette.indices(indexOf);
  if (!code.zeroRuns) return;
  uint32_t run = 0;
  for (const uint16_t value : folded) {
    if (value == 0) {
      ++run;
      continue;
    }
    nonZero.push_back(value);
    runs.push_back(run);
    run = 0;
  }
  if (nonZero.empty() && run > 0) {  // a slice has at least one coded weight
    nonZero.push_back(0);
    runs.push_back(0);
    --run;
  }
  runs.push_back(run);
  values = nonZero;
}

std::optional<SlicePlan> planSlices(const CodedSection& section, uint64_t limit) {
  SlicePlan plan;
  const size_t weights = section.values.size();
  CARINA_CHECK(weights > 0, "a section has at least one coded weight");
  const std::vector<Lanes> table = costTable(section);
  const auto definition = static_cast<uint64_t>(section.code.palette.definitionBits());
  if (limit < UINT64_MAX && definition + leastBits(section, table) >= limit) return std::nullopt;
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

}  // namespace carina::npu::swd
