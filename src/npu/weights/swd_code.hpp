// SPDX-License-Identifier: Apache-2.0
// The cost of a sequence of weights under a palette and a Golomb-Rice parameter, and the choice of the
// palette: the arithmetic behind the SWD encoder's decisions. Costs are in bits and exact except for the
// padding of the last chunk of a slice.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace carina::npu::swd {

constexpr int kFoldedValues = 512;  // folded weights: 2*|w| + (w < 0)
constexpr int kZeroRunModes = 4;    // Golomb-Rice shift 0..3 of zero runs
constexpr int kMaxQuotient = 31;
constexpr uint32_t kSliceHeaderBits = 23;

constexpr uint32_t fold(int16_t w) {
  return w < 0 ? static_cast<uint32_t>(-2 * w + 1) : static_cast<uint32_t>(2 * w);
}

constexpr int kRawDivisor = 7;

/// How indices are coded within a slice.
struct IndexCode {
  int divisor = 0;  // 0..5, or kRawDivisor
  bool truncated = false;
  bool operator==(const IndexCode&) const = default;
};
constexpr int kIndexCodes = 13;  // 0..5 plain, 0..5 truncated, raw
constexpr IndexCode indexCode(int n) {
  return n < 6 ? IndexCode{n, false} : n < 12 ? IndexCode{n - 6, true} : IndexCode{kRawDivisor, false};
}

/// Occurrences of folded weights, and their zero runs as they would be coded.
struct Statistics {
  std::array<uint32_t, kFoldedValues> count{};
  uint64_t total = 0;
  uint32_t runs = 0;                                // zero runs, each before a non-zero weight
  std::array<uint64_t, kZeroRunModes> quotients{};  // sum of run >> mode

  void add(const Statistics& other);
  uint64_t nonZero() const { return total - count[0]; }
};

/// A palette definition: up to 32 folded values, and the start of the direct values.
struct PaletteChoice {
  std::vector<uint16_t> entries;  // empty or 2..32
  int directOffset = 0;
  int bits = 2;  // of one entry; without entries, of raw indices

  int definitionBits() const { return 13 + static_cast<int>(entries.size()) * bits; }
  int rawBits() const;  // raw index bits
  /// Whether a raw index exists for the value (with entries: only for values in the palette).
  bool rawCovers(uint32_t folded) const;
  /// Index of every folded value; kNoIndex if it has none.
  void indices(std::array<uint16_t, kFoldedValues>& out) const;
};
constexpr uint16_t kNoIndex = 0xffff;

/// One way to code a section.
struct SectionCode {
  bool zeroRuns = false;
  PaletteChoice palette;
  uint64_t bits = 0;  // estimate, slice header and palette included
};

enum class Effort : uint8_t { Estimate, Full };

/// The cheapest coding of a section with constant parameters. Estimate tries only a few palettes.
SectionCode bestCode(const Statistics& statistics, Effort effort);
/// All sensible candidates with and without zero runs, cheapest first: at most `limit`, and possibly one
/// plain code.
std::vector<SectionCode> candidateCodes(const Statistics& statistics, size_t limit);

/// Cost of each folded value under a code with constant parameters, in eighths of a bit (zeros within runs
/// cost less than one).
std::array<uint32_t, kFoldedValues> valueCosts(const SectionCode& code, const Statistics& statistics);

/// Bits of index `index` under `code`, or a prohibitive cost if it cannot be coded.
constexpr uint32_t kUncodable = 2000;
constexpr uint32_t indexBits(uint32_t index, IndexCode code, int rawBits) {
  if (code.divisor == kRawDivisor)
    return index < (1u << rawBits) ? static_cast<uint32_t>(rawBits) : kUncodable;
  const uint32_t quotient = index >> code.divisor;
  if (code.truncated) {
    return quotient > 2 ? kUncodable : (quotient > 0 ? 2 : 1) + static_cast<uint32_t>(code.divisor);
  }
  return quotient > kMaxQuotient ? kUncodable : quotient + 1 + static_cast<uint32_t>(code.divisor);
}

}  // namespace carina::npu::swd
