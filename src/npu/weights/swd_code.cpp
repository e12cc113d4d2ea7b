// SPDX-License-Identifier: Apache-2.0
// Costs of Golomb-Rice codes over a histogram and the choice of palettes.
#include "npu/weights/swd_code.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "base/check.hpp"
#include "npu/weights/swd_kernels.hpp"

namespace carina::npu::swd {
namespace {

constexpr int kMaxDirectOffset = 31;
/// The last positions of the last chunk stay empty: half a chunk on average.
constexpr int kPaddingBits = 6;
constexpr uint64_t kNever = UINT64_MAX / 4;
/// Number of weights from which lowering the indices of direct values by one is worth three entries.
constexpr uint64_t kMany = 1024;
/// One zero in this many weights: more than in networks that are not sparse.
constexpr uint64_t kFillers = 16;
/// Divisor of the codes used for many distinct values: determines which values outside the palette are worth
/// an entry.
constexpr int kCostlyDivisor = 5;

using Histogram = std::array<uint32_t, kFoldedValues>;

/// Cheapest of the twelve Golomb-Rice codes for a histogram of indices 0..last.
uint64_t golombRiceBits(const uint32_t* counts, int last, uint64_t total) {
  const QuotientSums quotients = quotientSums(counts, last);
  uint64_t best = kNever;
  for (int divisor = 0; divisor <= 5; ++divisor) {
    const uint64_t fixed = total * static_cast<uint64_t>(divisor + 1);
    if ((last >> divisor) <= 2) {
      // Truncated: one more bit for every quotient that is not zero.
      uint64_t second = total;
      for (int n = 0; n <= std::min(last, (1 << divisor) - 1); ++n) second -= counts[n];
      best = std::min(best, fixed + second);
    }
    if ((last >> divisor) > kMaxQuotient) continue;
    best = std::min(best, fixed + quotients[static_cast<size_t>(divisor)]);
  }
  return best + kPaddingBits;
}

/// The values that are coded, and the most frequent of them.
struct Values {
  explicit Values(const Statistics& statistics);
  /// The same without zeros, which are coded as runs.
  Values(const Values& all, const Statistics& statistics);
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  Histogram own;                     // if it is not that of the statistics
  const uint32_t* counts = nullptr;  // of the coded values (without zero if runs are used)
  uint64_t total = 0;
  int first = 0, last = 0;  // lowest and highest used folded value
  Ranking ranking;

  std::span<const uint16_t> ranked() const { return {ranking.values.data(), ranking.count}; }

 private:
  void rankAll() {
    ranking = rank(std::span<const uint32_t, kFoldedValues>(counts, kFoldedValues),
                   static_cast<size_t>(last) + 1, total);
  }
};

/// End of the values that occur: one past the highest.
size_t endOf(const uint32_t* counts) {
  constexpr size_t kBlock = 16;
  size_t end = kFoldedValues;
  for (uint32_t any = 0; end > 0; end -= kBlock) {
    for (size_t n = end - kBlock; n < end; ++n) any |= counts[n];
    if (any != 0) break;
  }
  while (end > 0 && counts[end - 1] == 0) --end;
  return end;
}

Values::Values(const Statistics& statistics) : counts(statistics.count.data()), total(statistics.total) {
  const size_t end = endOf(counts);
  CARINA_CHECK(end > 0, "statistics are of at least one weight");
  last = static_cast<int>(end) - 1;
  while (counts[static_cast<size_t>(first)] == 0) ++first;
  rankAll();
}

Values::Values(const Values& all, const Statistics& statistics)
    : total(statistics.nonZero()), first(1), last(all.last) {
  counts = own.data();
  if (total == 0) {  // nothing but zeros: one of them is coded as a weight
    own = {};
    own[0] = 1;
    total = 1;
    first = last = 0;
  } else {
    own = statistics.count;
    own[0] = 0;
    while (own[static_cast<size_t>(first)] == 0) ++first;
  }
  rankAll();
}

PaletteChoice noPalette(const Values& values) {
  PaletteChoice choice;
  choice.directOffset = std::min(values.first, kMaxDirectOffset);
  choice.bits =
      std::max(2, static_cast<int>(std::bit_width(static_cast<unsigned>(values.last - choice.directOffset))));
  return choice;
}

uint64_t bitsWithout(const Values& values, const PaletteChoice& choice) {
  const uint64_t coded =
      golombRiceBits(values.counts + choice.directOffset, values.last - choice.directOffset, values.total);
  return std::min(coded, values.total * static_cast<uint64_t>(choice.bits)) +
         static_cast<uint64_t>(choice.definitionBits());
}

/// A palette of these values, padded to the smallest size that can be encoded; the rest stay direct.
PaletteChoice paletteOf(const Values& values, std::vector<uint16_t> entries) {
  PaletteChoice choice;
  choice.entries = std::move(entries);
  int highest = 0;
  std::array<bool, kFoldedValues> inside{};
  for (const uint16_t entry : choice.entries) {
    highest = std::max<int>(highest, entry);
    inside[entry] = true;
  }
  choice.bits = std::max(2, static_cast<int>(std::bit_width(static_cast<unsigned>(highest))));
  choice.entries.resize(std::max<size_t>(choice.entries.size(), 2), 0);
  // Direct values start at the lowest one outside the palette.
  int direct = values.first;
  while (direct < values.last &&
         (inside[static_cast<size_t>(direct)] || values.counts[static_cast<size_t>(direct)] == 0)) {
    ++direct;
  }
  choice.directOffset = std::min(direct, kMaxDirectOffset);
  return choice;
}

/// The `size` most frequent values as palette.
PaletteChoice paletteOfFrequent(const Values& values, size_t size) {
  const auto ranked = values.ranked().first(std::min(size, values.ranked().size()));
  return paletteOf(values, {ranked.begin(), ranked.end()});
}

/// A palette of all values below `offset` and the `others` that cost most as direct values. Values below the
/// offset that do not occur lower the indices of the direct values, and so their cost.
PaletteChoice paletteBelow(const Values& values, int offset, size_t others) {
  std::vector<uint16_t> entries;
  for (int value = values.first; value < offset; ++value) {
    if (values.counts[static_cast<size_t>(value)] > 0) entries.push_back(static_cast<uint16_t>(value));
  }
  using Dear = std::pair<uint64_t, uint16_t>;  // bits beyond the first quotient's, value
  std::vector<Dear> dear;
  for (int value = offset; others > 0 && value <= values.last; ++value) {
    const uint64_t bits = uint64_t{values.counts[static_cast<size_t>(value)]} *
                          static_cast<uint64_t>((value - offset) >> kCostlyDivisor);
    if (bits > 0) dear.emplace_back(bits, static_cast<uint16_t>(value));
  }
  const size_t count = std::min(others, dear.size());
  std::partial_sort(dear.begin(), dear.begin() + static_cast<std::ptrdiff_t>(count), dear.end(),
                    std::greater<>());
  for (size_t n = 0; n < count; ++n) entries.push_back(dear[n].second);
  std::stable_sort(entries.begin(), entries.end(),
                   [&](uint16_t a, uint16_t b) { return values.counts[a] > values.counts[b]; });
  return paletteOf(values, std::move(entries));
}

uint64_t bitsWith(const Values& values, const PaletteChoice& choice) {
  // Indices: first the palette, then the direct values from the offset on.
  const size_t entries = choice.entries.size();
  const auto from = static_cast<size_t>(choice.directOffset), end = static_cast<size_t>(values.last) + 1;
  std::array<uint32_t, kFoldedValues + kMaxPalette> byIndex;
  std::copy(values.counts + from, values.counts + end, byIndex.begin() + entries);
  for (size_t n = 0; n < entries; ++n) {
    const size_t value = choice.entries[n];
    const auto entry = choice.entries.begin() + static_cast<std::ptrdiff_t>(n);
    const bool filler = value == 0 && std::find(choice.entries.begin(), entry, value) != entry;
    byIndex[n] = filler ? 0 : values.counts[value];
    if (value >= from) byIndex[entries + value - from] = 0;
  }
  size_t last = entries + end - from - 1;
  while (last > 0 && byIndex[last] == 0) --last;
  if (last >= kFoldedValues) return kNever;
  uint64_t bits = golombRiceBits(byIndex.data(), static_cast<int>(last), values.total);
  if (last < entries) bits = std::min(bits, values.total * static_cast<uint64_t>(choice.rawBits()));
  return bits + static_cast<uint64_t>(choice.definitionBits());
}

uint64_t zeroRunBits(const Statistics& statistics) {
  uint64_t best = kNever;
  for (int mode = 0; mode < kZeroRunModes; ++mode) {
    // One more run than weights: the one before the first.
    const uint64_t runs = uint64_t{statistics.runs} + 1;
    best = std::min(best,
                    statistics.quotients[static_cast<size_t>(mode)] + runs * static_cast<uint64_t>(mode + 1));
  }
  return best + kPaddingBits;
}

/// n * log2(n), for sums of entropies.
double nLogN(uint64_t n) {
  static const std::array<float, 1024> table = [] {
    std::array<float, 1024> values{};
    for (size_t k = 2; k < values.size(); ++k)
      values[k] = static_cast<float>(static_cast<double>(k) * std::log2(static_cast<double>(k)));
    return values;
  }();
  return n < table.size() ? static_cast<double>(table[n])
                          : static_cast<double>(n) * std::log2(static_cast<double>(n));
}

/// Lower bound for codes with zero runs: the entropy of the other weights, and the runs.
uint64_t leastWithZeroRuns(const Statistics& statistics) {
  const size_t end = endOf(statistics.count.data());
  double bits = nLogN(statistics.nonZero());
  for (size_t value = 1; value < end; ++value) bits -= nLogN(statistics.count[value]);
  // The table's values are rounded.
  const double safe = std::max(0.0, bits * 0.999 - 1);
  return kSliceHeaderBits + zeroRunBits(statistics) + static_cast<uint64_t>(safe);
}

/// Zero runs cost a bit or more per non-zero weight, and save at most what a zero costs as an index. Skips
/// them if they cannot be among the `limit` cheapest codes, given the known ones.
bool zeroRunsMayPay(const Statistics& statistics, const std::vector<SectionCode>& known, size_t limit) {
  constexpr uint64_t kMaxIndexBits = 9;
  if (uint64_t{statistics.count[0]} * kMaxIndexBits <= statistics.nonZero()) return false;
  const uint64_t least = leastWithZeroRuns(statistics);
  const auto cheaper = [&](const SectionCode& code) { return code.bits <= least; };
  return static_cast<size_t>(std::count_if(known.begin(), known.end(), cheaper)) < limit;
}

void collect(const Values& values, const Statistics& statistics, bool zeroRuns, Effort effort,
             std::vector<SectionCode>& out) {
  const uint64_t fixed = kSliceHeaderBits + (zeroRuns ? zeroRunBits(statistics) : 0);
  const auto add = [&](PaletteChoice choice, uint64_t bits) {
    if (bits < kNever) out.push_back({zeroRuns, std::move(choice), bits + fixed});
  };
  PaletteChoice plain = noPalette(values);
  const uint64_t plainBits = bitsWithout(values, plain);
  add(std::move(plain), plainBits);
  const auto tryChoice = [&](PaletteChoice choice) {
    const uint64_t bits = bitsWith(values, choice);
    add(std::move(choice), bits);
  };
  const auto tryPalette = [&](size_t size) { tryChoice(paletteOfFrequent(values, size)); };
  const size_t most = std::max<size_t>(values.ranked().size(), 2);
  if (effort == Effort::Estimate) {
    tryPalette(most);
  } else {
    // Every small size; larger ones in steps, since a few entries more or less hardly matter there.
    for (size_t size = 2; size < most; size += size < 8 ? 1 : size < 16 ? 2 : 4) tryPalette(size);
    tryPalette(most);
    if (values.total >= kMany && values.last - values.first > static_cast<int>(kMaxPalette)) {
      const int low = values.first + 3;  // after 0, -0 (which never occurs) and 1
      for (const size_t others : {0, 1, 2, 4, 8}) tryChoice(paletteBelow(values, low, others));
    }
  }
}

/// The codes of all kinds that may be among the `limit` cheapest.
std::vector<SectionCode> collected(const Statistics& statistics, Effort effort, size_t limit) {
  std::vector<SectionCode> codes;
  codes.reserve(8);
  const Values values(statistics);
  collect(values, statistics, false, effort, codes);
  if (zeroRunsMayPay(statistics, codes, limit))
    collect(Values(values, statistics), statistics, true, effort, codes);
  return codes;
}

}  // namespace

void Statistics::add(const Statistics& other) {
  for (size_t n = 0; n < count.size(); ++n) count[n] += other.count[n];
  total += other.total;
  runs += other.runs;
  for (size_t n = 0; n < quotients.size(); ++n) quotients[n] += other.quotients[n];
}

int PaletteChoice::rawBits() const {
  return entries.empty() ? bits : static_cast<int>(std::bit_width(static_cast<unsigned>(entries.size() - 1)));
}

bool PaletteChoice::rawCovers(uint32_t folded) const {
  if (!entries.empty()) return std::find(entries.begin(), entries.end(), folded) != entries.end();
  return folded >= static_cast<uint32_t>(directOffset) &&
         folded - static_cast<uint32_t>(directOffset) < (1u << bits);
}

void PaletteChoice::indices(std::array<uint16_t, kFoldedValues>& out) const {
  const int size = static_cast<int>(entries.size());
  for (int value = 0; value < kFoldedValues; ++value) {
    const int index = value - directOffset + size;
    out[static_cast<size_t>(value)] =
        value >= directOffset && index < kFoldedValues ? static_cast<uint16_t>(index) : kNoIndex;
  }
  for (int n = size - 1; n >= 0; --n) out[entries[static_cast<size_t>(n)]] = static_cast<uint16_t>(n);
}

SectionCode bestCode(const Statistics& statistics, Effort effort) {
  const std::vector<SectionCode> codes = collected(statistics, effort, 1);
  return *std::min_element(codes.begin(), codes.end(),
                           [](const SectionCode& a, const SectionCode& b) { return a.bits < b.bits; });
}

std::vector<SectionCode> candidateCodes(const Statistics& statistics, size_t limit) {
  std::vector<SectionCode> codes = collected(statistics, Effort::Full, limit);
  std::stable_sort(codes.begin(), codes.end(),
                   [](const SectionCode& a, const SectionCode& b) { return a.bits < b.bits; });
  if (codes.size() <= limit) return codes;
  // Padding zeros of weight orders come in sequences, for which slices can have a separate code: a palette or
  // zero runs that pay off with one code for the whole section may not pay off then.
  const auto rest = codes.begin() + static_cast<std::ptrdiff_t>(limit);
  const auto plain = [](const SectionCode& code) { return !code.zeroRuns && code.palette.entries.empty(); };
  std::vector<SectionCode> kept(codes.begin(), rest);
  if (statistics.count[0] >= statistics.total / kFillers && std::none_of(codes.begin(), rest, plain)) {
    const auto found = std::find_if(rest, codes.end(), plain);
    if (found != codes.end()) kept.push_back(*found);
  }
  return kept;
}

std::array<uint32_t, kFoldedValues> valueCosts(const SectionCode& code, const Statistics& statistics) {
  std::array<uint16_t, kFoldedValues> indexOf;
  code.palette.indices(indexOf);
  const int rawBits = code.palette.rawBits();
  const auto costOf = [&](size_t value, int n) {
    const bool coded = indexOf[value] != kNoIndex &&
                       (n != kIndexCodes - 1 || code.palette.rawCovers(static_cast<uint32_t>(value)));
    return 8 * (coded ? indexBits(indexOf[value], indexCode(n), rawBits) : kUncodable);
  };
  std::array<uint16_t, kFoldedValues> used;
  size_t usedCount = 0;
  const size_t end = endOf(statistics.count.data());
  for (size_t value = code.zeroRuns ? 1 : 0; value < end; ++value) {
    used[usedCount] = static_cast<uint16_t>(value);
    usedCount += statistics.count[value] > 0 ? 1 : 0;
  }
  int cheapest = 0;
  uint64_t bestTotal = UINT64_MAX;
  for (int n = 0; n < kIndexCodes; ++n) {
    uint64_t total = 0;
    for (size_t k = 0; k < usedCount; ++k) total += uint64_t{costOf(used[k], n)} * statistics.count[used[k]];
    if (total < bestTotal) {
      bestTotal = total;
      cheapest = n;
    }
  }
  std::array<uint32_t, kFoldedValues> best;
  for (size_t value = 0; value < best.size(); ++value) best[value] = costOf(value, cheapest);
  if (code.zeroRuns) {
    int mode = 0;
    uint64_t bestRuns = UINT64_MAX;
    for (int m = 0; m < kZeroRunModes; ++m) {
      const uint64_t bits = statistics.quotients[static_cast<size_t>(m)] +
                            uint64_t{statistics.runs} * static_cast<uint64_t>(m + 1);
      if (bits < bestRuns) bestRuns = bits, mode = m;
    }
    for (uint32_t& cost : best) cost += 8 * static_cast<uint32_t>(mode + 1);
    best[0] = 8u >> mode;
  }
  return best;
}

}  // namespace carina::npu::swd
