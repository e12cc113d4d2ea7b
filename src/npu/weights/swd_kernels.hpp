// SPDX-License-Identifier: Apache-2.0
// Inner loops for choosing and writing codes, compiled for several instruction sets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "npu/weights/swd_bits.hpp"
#include "npu/weights/swd_slices.hpp"

namespace carina::npu::swd {

constexpr size_t kMaxPalette = 32;

/// Number of values that are ranked. With 31 entries, direct values keep their place (the offset goes up to
/// 31); 32 only pay off if there are no other values.
constexpr size_t rankedOf(size_t distinct) {
  return distinct <= kMaxPalette ? distinct : kMaxPalette - 1;
}

/// The most frequent values; of equally frequent ones, the smallest first.
struct Ranking {
  size_t distinct = 0;  // values that occur
  size_t count = 0;     // ranked values: rankedOf(distinct)
  std::array<uint16_t, kMaxPalette> values;
};
/// `total` is the sum of all counts; those from `end` on are zero.
Ranking rank(std::span<const uint32_t, kFoldedValues> counts, size_t end, uint64_t total);

/// Sums of the quotients of all indices 0..last, for every divisor 2^0..2^5.
using QuotientSums = std::array<uint64_t, 6>;
QuotientSums quotientSums(const uint32_t* counts, int last);

/// One value per index code, padded for vector units: the search for slices spends its time adding these.
struct alignas(32) Lanes {
  static constexpr int kCount = 16;
  /// Eight of the sixteen lanes.
  using Half = int16_t __attribute__((vector_size(16)));

  Half half[2];

  int16_t operator[](size_t lane) const { return half[lane / 8][lane % 8]; }
  void set(size_t lane, uint32_t bits) { half[lane / 8][lane % 8] = static_cast<int16_t>(bits); }
};
/// For each group of values, the sum of the table rows that they select; the last group may be short.
void sumGroups(std::span<const uint16_t> values, size_t group, const Lanes* table, std::span<Lanes> sums);

/// The coded weights of a slice.
struct SliceWeights {
  const uint16_t* values = nullptr;
  size_t count = 0;
  const uint16_t* indexOf = nullptr;
  int divisor = 0, restBits = 0;
  bool truncated = false;

  bool raw() const { return divisor == kRawDivisor; }
};

struct SliceRuns {
  const uint32_t* values = nullptr;
  size_t count = 0;
  int mode = 0;
};

/// The bit strings of a slice; every chunk contains the next part of each.
struct SliceBits {
  BitSource unary, rests, runUnary, runRests;
};

/// Unary parts of weights whose code is not raw: two bits per position.
void putUnary(const SliceWeights& weights, BitCursor& out);
/// Remainders of weights, or raw indices.
void putRests(const SliceWeights& weights, BitCursor& out);
/// A slice without its header.
void putChunks(const SliceWeights& weights, const SliceRuns& runs, const SliceBits& bits, BitCursor& out);

}  // namespace carina::npu::swd
