// SPDX-License-Identifier: Apache-2.0
// What the choice of codes spends its time on, in the processor's widest vectors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "npu/weights/swd_code.hpp"

namespace carina::npu::swd {

constexpr size_t kMaxPalette = 32;

/// How many values of so many are ranked. With 31 entries direct values keep their place (the offset reaches
/// 31); 32 are worth it only when they are all.
constexpr size_t rankedOf(size_t distinct) {
  return distinct <= kMaxPalette ? distinct : kMaxPalette - 1;
}

/// The most frequent values, of those that occur equally often the smallest first.
struct Ranking {
  size_t distinct = 0;  // values that occur
  size_t count = 0;     // of them ranked: rankedOf(distinct)
  std::array<uint16_t, kMaxPalette> values;
};
/// `total` is the sum of all counts, of which none from `end` on is more than zero.
Ranking rank(std::span<const uint32_t, kFoldedValues> counts, size_t end, uint64_t total);

/// Quotients of all indices 0..last added up, for every divisor 2^0..2^5.
using QuotientSums = std::array<uint64_t, 6>;
QuotientSums quotientSums(const uint32_t* counts, int last);

}  // namespace carina::npu::swd
