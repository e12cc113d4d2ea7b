// SPDX-License-Identifier: Apache-2.0
#include "npu/weights/swd_kernels.hpp"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "npu/weights/swd_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef CARINA_NPU_WEIGHTS_SWD_KERNELS_ONCE
#define CARINA_NPU_WEIGHTS_SWD_KERNELS_ONCE
namespace carina::npu::swd {

/// The unary part of a quotient, two bits per position: one of a chunk's first unary string and, if that is
/// set, one of its second.
struct Unary {
  uint32_t bits = 0, count = 0;
};
using UnaryTable = std::array<Unary, kMaxQuotient + 1>;

/// Each position of a weight except the last covers two of its quotient; the last one covers the rest.
constexpr UnaryTable plainUnary() {
  UnaryTable table;
  for (uint32_t quotient = 0; quotient < table.size(); ++quotient) {
    const uint32_t whole = quotient & ~1u;
    table[quotient] = {((1 + quotient % 2) << whole) - 1, whole + 2};
  }
  return table;
}

/// A truncated code has one position: quotients up to 2.
constexpr UnaryTable truncatedUnary() {
  return {{{0, 2}, {1, 2}, {3, 2}}};
}

constexpr UnaryTable kPlainUnary = plainUnary(), kTruncatedUnary = truncatedUnary();

/// Four positions as stored in a chunk.
struct Positions {
  uint8_t first = 0, second = 0, secondCount = 0;
  uint8_t open = 0;  // positions that do not complete their weight, unless the code is truncated
};

constexpr std::array<Positions, 256> kPositions = [] {
  std::array<Positions, 256> table;
  for (uint32_t bits = 0; bits < table.size(); ++bits) {
    Positions& entry = table[bits];
    for (uint32_t position = 0; position < 4; ++position) {
      const uint32_t first = bits >> 2 * position & 1, second = bits >> (2 * position + 1) & 1;
      entry.first |= static_cast<uint8_t>(first << position);
      if (first == 0) continue;
      entry.second |= static_cast<uint8_t>(second << entry.secondCount++);
      entry.open += second;
    }
  }
  return table;
}();

}  // namespace carina::npu::swd
#endif

HWY_BEFORE_NAMESPACE();
namespace carina::npu::swd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<uint32_t, 16>;

/// Values and their frequencies, in the order of the values; whole vectors may be written after the last.
struct Occurring {
  size_t size = 0;
  uint32_t count[kFoldedValues + 16], value[kFoldedValues + 16];
  uint32_t place[kMaxPalette];

  /// Adds those of the first `last` that occur more than `often` times; `values` null: the position is the
  /// value.
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
  /// Number of values that occur more than `often` times.
  size_t beyond(Tag d, uint32_t often) const {
    const auto limit = hn::Set(d, often);
    size_t found = 0;
    for (size_t n = 0; n < size; n += hn::Lanes(d))
      found += hn::CountTrue(d, hn::LoadU(d, count + n) > limit);
    return found;
  }
};

/// The threshold frequency of ranked values is found bit by bit: a selection that compares values with each
/// other would be dominated by mispredicted branches.
void rankKernel(const uint32_t* counts, size_t end, uint64_t total, Ranking& ranking) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  Occurring all, frequent;
  all.add(d, counts, nullptr, end, 0);
  ranking.distinct = all.size;
  ranking.count = rankedOf(all.size);
  uint32_t least = 0;
  if (ranking.count < all.size) {
    // An upper bound on the frequency that ranking.count values reach.
    const auto most = static_cast<uint32_t>(total / ranking.count);
    for (uint32_t bit = std::bit_floor(most); bit > 0; bit >>= 1) {
      if (all.beyond(d, (least | bit) - 1) >= ranking.count) least |= bit;
    }
  }
  frequent.add(d, all.count, all.value, all.size, least);
  // Each is placed after all more frequent values, and after smaller values of the same frequency. They are
  // no more than the ranked ones.
  for (size_t n = 0; n < kMaxPalette; n += lanes) {
    const auto counted = hn::LoadU(d, frequent.count + n), index = hn::Iota(d, static_cast<uint32_t>(n));
    auto place = hn::Zero(d);
    for (size_t before = 0; before < frequent.size; ++before) {
      const auto smaller =
          hn::VecFromMask(d, index > hn::Set(d, static_cast<uint32_t>(before)));  // -1 if true
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
  uint64_t reached = 0;  // sum of block * count
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

void sumKernel(const uint16_t* values, size_t count, size_t group, const Lanes* table, Lanes* sums) {
  const hn::CappedTag<int16_t, Lanes::kCount> d;
  const auto rowOf = [&](size_t n, size_t lane) {
    return hn::Load(d, reinterpret_cast<const int16_t*>(&table[values[n]]) + lane);
  };
  for (size_t begin = 0; begin < count; begin += group, ++sums) {
    const size_t end = std::min(count, begin + group);
    for (size_t lane = 0; lane < Lanes::kCount; lane += hn::Lanes(d)) {
      auto sum = rowOf(begin, lane);
      for (size_t n = begin + 1; n < end; ++n) sum = hn::Add(sum, rowOf(n, lane));
      hn::Store(sum, d, reinterpret_cast<int16_t*>(sums) + lane);
    }
  }
}

// No vectors here, but on these targets shifts by a variable count take one instruction rather than three.

void unaryKernel(const SliceWeights& weights, BitCursor& cursor) {
  const Unary* table = (weights.truncated ? kTruncatedUnary : kPlainUnary).data();
  const uint16_t *values = weights.values, *indexOf = weights.indexOf;
  const int divisor = weights.divisor;
  BitCursor out = cursor;
  size_t n = 0;
  for (; n + 2 <= weights.count; n += 2) {
    const Unary a = table[indexOf[values[n]] >> divisor], b = table[indexOf[values[n + 1]] >> divisor];
    const auto count = static_cast<int>(a.count + b.count);
    if (count > BitCursor::kMaxBits) {
      out.put(a.bits, static_cast<int>(a.count));
      out.put(b.bits, static_cast<int>(b.count));
    } else {
      out.put(a.bits | uint64_t{b.bits} << a.count, count);
    }
  }
  if (n < weights.count) {
    const Unary last = table[indexOf[values[n]] >> divisor];
    out.put(last.bits, static_cast<int>(last.count));
  }
  cursor = out;
}

void restsKernel(const SliceWeights& weights, BitCursor& cursor) {
  const uint16_t *values = weights.values, *indexOf = weights.indexOf;
  const int bits = weights.restBits;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  BitCursor out = cursor;
  size_t n = 0;
  for (; n + 4 <= weights.count; n += 4) {
    const uint64_t low = (indexOf[values[n]] & mask) | (indexOf[values[n + 1]] & mask) << bits;
    const uint64_t high = (indexOf[values[n + 2]] & mask) | (indexOf[values[n + 3]] & mask) << bits;
    out.put(low | high << 2 * bits, 4 * bits);
  }
  for (; n < weights.count; ++n) out.put(indexOf[values[n]] & mask, bits);
  cursor = out;
}

/// Puts a number of bits that may exceed kMaxBits.
inline void putLong(BitCursor& out, BitSource& from, int count) {
  if (count > BitCursor::kMaxBits) {
    out.put(from.take(BitCursor::kMaxBits), BitCursor::kMaxBits);
    count -= BitCursor::kMaxBits;
  }
  out.put(from.take(count), count);
}

void chunksKernel(const SliceWeights& weights, const SliceRuns& runs, const SliceBits& bits,
                  BitCursor& cursor) {
  /// Number of weights that may be completed ahead of the zero runs that precede them.
  constexpr int64_t kMaxBalance = 8;
  const bool raw = weights.raw(), zeroRuns = runs.count > 0;
  const size_t rawPositions = weights.restBits > 5 ? 8 : 12;
  const int positionsOfRuns = runPositions(runs.mode);
  BitSource unary = bits.unary, rests = bits.rests, runUnary = bits.runUnary, runRests = bits.runRests;
  BitCursor out = cursor;
  size_t w = 0, z = 0;           // completed
  int wClosed = 0, zClosed = 0;  // of these, in the previous chunk
  for (;;) {
    const int64_t balance = zeroRuns ? static_cast<int64_t>(w) - static_cast<int64_t>(z) : 0;
    const bool weightsOn = w < weights.count && balance < kMaxBalance;
    const bool runsOn = z < runs.count && balance >= 0;
    const size_t wStart = w, zStart = z;
    uint64_t second = 0;
    int secondCount = 0;
    if (weightsOn && raw) {
      w = std::min(weights.count, w + rawPositions);
    } else if (weightsOn) {
      const uint64_t positions = unary.take(2 * kWeightPositions);
      const Positions a = kPositions[positions & 255], b = kPositions[positions >> 8 & 255],
                      c = kPositions[positions >> 16];
      out.put(a.first | uint32_t{b.first} << 4 | uint32_t{c.first} << 8, kWeightPositions);
      second = a.second | (b.second | uint64_t{c.second} << b.secondCount) << a.secondCount;
      secondCount = a.secondCount + b.secondCount + c.secondCount;
      const int open = weights.truncated ? 0 : a.open + b.open + c.open;
      w = std::min(weights.count, w + static_cast<size_t>(kWeightPositions - open));
    }
    if (runsOn) {
      const uint64_t positions = runUnary.take(positionsOfRuns);
      z = std::min(runs.count, z + static_cast<size_t>(positionsOfRuns - hwy::PopCount(positions)));
      out.put(positions, positionsOfRuns);
    }
    out.put(second, secondCount);
    putLong(out, rests, wClosed * weights.restBits);
    if (zeroRuns) out.put(runRests.take(zClosed * runs.mode), zClosed * runs.mode);
    wClosed = static_cast<int>(w - wStart);
    zClosed = static_cast<int>(z - zStart);
    if (!weightsOn && !runsOn) break;
  }
  cursor = out;
}

}  // namespace carina::npu::swd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carina::npu::swd {
namespace {
HWY_EXPORT(rankKernel);
HWY_EXPORT(quotientSumsKernel);
HWY_EXPORT(sumKernel);
HWY_EXPORT(unaryKernel);
HWY_EXPORT(restsKernel);
HWY_EXPORT(chunksKernel);
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

void sumGroups(std::span<const uint16_t> values, size_t group, const Lanes* table, std::span<Lanes> sums) {
  HWY_DYNAMIC_DISPATCH(sumKernel)
  (values.data(), std::min(values.size(), sums.size() * group), group, table, sums.data());
}

void putUnary(const SliceWeights& weights, BitCursor& out) {
  HWY_DYNAMIC_DISPATCH(unaryKernel)(weights, out);
}

void putRests(const SliceWeights& weights, BitCursor& out) {
  HWY_DYNAMIC_DISPATCH(restsKernel)(weights, out);
}

void putChunks(const SliceWeights& weights, const SliceRuns& runs, const SliceBits& bits, BitCursor& out) {
  HWY_DYNAMIC_DISPATCH(chunksKernel)(weights, runs, bits, out);
}

}  // namespace carina::npu::swd
#endif
