// SPDX-License-Identifier: Apache-2.0
#include "npu/weights/swd_kernels.hpp"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "npu/weights/swd_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace carina::npu::swd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<uint32_t, 16>;

/// Values and how often they occur, in their order; whole vectors may be written behind the last.
struct Occurring {
  size_t size = 0;
  uint32_t count[kFoldedValues + 16], value[kFoldedValues + 16];
  uint32_t place[kMaxPalette];

  /// Those of the first `last` that occur more often than `often`; `values` null: every place is a value.
  void add(Tag d, const uint32_t* counts, const uint32_t* values, size_t last, uint32_t often) {
#if HWY_TARGET <= HWY_AVX3
    for (size_t n = 0; n < last; n += hn::Lanes(d)) {
      const auto row = hn::LoadU(d, counts + n);
      const auto which = row > hn::Set(d, often);
      // Not CompressStore: some processors take a hundred cycles to compress into memory.
      hn::StoreU(
          hn::Compress(values ? hn::LoadU(d, values + n) : hn::Iota(d, static_cast<uint32_t>(n)), which), d,
          value + size);
      hn::StoreU(hn::Compress(row, which), d, count + size);
      size += hn::CountTrue(d, which);
    }
#else
    for (size_t n = 0; n < last; ++n) {
      count[size] = counts[n];
      value[size] = values ? values[n] : static_cast<uint32_t>(n);
      size += counts[n] > often ? 1 : 0;
    }
#endif
    hn::StoreU(hn::Zero(d), d, count + size);
  }
  /// How many occur more often.
  size_t beyond(Tag d, uint32_t often) const {
    const auto limit = hn::Set(d, often);
    size_t found = 0;
    for (size_t n = 0; n < size; n += hn::Lanes(d))
      found += hn::CountTrue(d, hn::LoadU(d, count + n) > limit);
    return found;
  }
};

/// The frequency from which on values count is found bit by bit: a selection by comparing values with each
/// other would mostly wait for branches.
void rankKernel(const uint32_t* counts, size_t end, uint64_t total, Ranking& ranking) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  Occurring all, frequent;
  all.add(d, counts, nullptr, end, 0);
  ranking.distinct = all.size;
  ranking.count = rankedOf(all.size);
  uint32_t least = 0;
  if (ranking.count < all.size) {
    // That many values occur so often at most.
    const auto most = static_cast<uint32_t>(total / ranking.count);
    for (uint32_t bit = std::bit_floor(most); bit > 0; bit >>= 1) {
      if (all.beyond(d, (least | bit) - 1) >= ranking.count) least |= bit;
    }
  }
  frequent.add(d, all.count, all.value, all.size, least);
  // Each takes the place behind all that are more frequent, and behind smaller values that are as frequent:
  // fewer than the ranked.
  for (size_t n = 0; n < kMaxPalette; n += lanes) {
    const auto counted = hn::LoadU(d, frequent.count + n), index = hn::Iota(d, static_cast<uint32_t>(n));
    auto place = hn::Zero(d);
    for (size_t before = 0; before < frequent.size; ++before) {
      const auto smaller =
          hn::VecFromMask(d, index > hn::Set(d, static_cast<uint32_t>(before)));  // -1 where it is
      const auto others = hn::Set(d, frequent.count[before]) - smaller;
      place = place - hn::VecFromMask(d, others > counted);
    }
    hn::StoreU(place, d, frequent.place + n);
  }
  for (size_t a = 0; a < frequent.size; ++a)
    ranking.values[frequent.place[a]] = static_cast<uint16_t>(frequent.value[a]);
  size_t filled = frequent.size;
  for (size_t n = 0; filled < ranking.count; ++n) {
    ranking.values[filled] = static_cast<uint16_t>(all.value[n]);
    filled += all.count[n] == least ? 1 : 0;
  }
}

/// Index = 32 * block + lane: its quotient by a power of two up to 32 is the sum of both parts' quotients.
void quotientSumsKernel(const uint32_t* counts, int last, QuotientSums& sums) {
  constexpr size_t kBlock = 32;
  const size_t size = static_cast<size_t>(last) + 1, blocks = size / kBlock, left = size % kBlock;
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  uint32_t byLane[kBlock] = {}, tail[kBlock] = {};
  std::copy(counts + blocks * kBlock, counts + size, tail);
  uint64_t reached = 0;  // by block * count
  for (size_t block = 0; block < blocks + (left > 0 ? 1 : 0); ++block) {
    const uint32_t* row = block < blocks ? counts + block * kBlock : tail;
    auto inBlock = hn::Zero(d);
    for (size_t n = 0; n < kBlock; n += lanes) {
      const auto some = hn::LoadU(d, row + n);
      inBlock = inBlock + some;
      hn::StoreU(hn::LoadU(d, byLane + n) + some, d, byLane + n);
    }
    reached += block * uint64_t{hn::GetLane(hn::SumOfLanes(d, inBlock))};
  }
  for (size_t divisor = 0; divisor < sums.size(); ++divisor) {
    uint64_t sum = reached << (5 - divisor);
    for (size_t lane = 0; lane < kBlock; ++lane) sum += uint64_t{byLane[lane]} * (lane >> divisor);
    sums[divisor] = sum;
  }
}

}  // namespace carina::npu::swd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carina::npu::swd {
namespace {
HWY_EXPORT(rankKernel);
HWY_EXPORT(quotientSumsKernel);
}  // namespace

Ranking rank(std::span<const uint32_t, kFoldedValues> counts, size_t end, uint64_t total) {
  Ranking ranking;
  HWY_DYNAMIC_DISPATCH(rankKernel)(counts.data(), end, total, ranking);
  return ranking;
}

QuotientSums quotientSums(const uint32_t* counts, int last) {
  QuotientSums sums;
  HWY_DYNAMIC_DISPATCH(quotientSumsKernel)(counts, last, sums);
  return sums;
}

}  // namespace carina::npu::swd
#endif
