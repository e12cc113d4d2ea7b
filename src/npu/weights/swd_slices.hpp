// SPDX-License-Identifier: Apache-2.0
// Cuts a section (a stretch with one palette) into slices, each with its own Golomb-Rice parameters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "npu/weights/swd_code.hpp"

namespace carina::npu::swd {

/// A section ready to be coded: its folded weights or, with zero runs, those of them that are coded and the
/// runs around them (one more than weights: before the first, then behind each).
struct CodedSection {
  /// The folded weights have to stay where they are.
  CodedSection(std::span<const uint16_t> folded, SectionCode sectionCode);
  CodedSection(CodedSection&&) = default;
  CodedSection& operator=(CodedSection&&) = default;

  SectionCode code;
  std::array<uint16_t, kFoldedValues> indexOf;  // palette index of each value
  std::span<const uint16_t> values;
  std::vector<uint16_t> nonZero;  // with zero runs, where the values lie
  std::vector<uint32_t> runs;
};

/// Positions of the unary parts in a chunk: of weights, and of zero runs with so many bits of remainder.
constexpr int kWeightPositions = 12;
constexpr int runPositions(int zeroRunMode) {
  return zeroRunMode == 3 ? 8 : 12;
}

struct Slice {
  uint32_t begin = 0, end = 0;  // coded weights
  IndexCode indexCode;
  int zeroRunMode = 0;
};

struct SlicePlan {
  std::vector<Slice> slices;
  uint64_t bits = 0;  // exact size of the section
};

/// Cheapest parameters over the section: dynamic programming over groups of weights, cuts moved to the best
/// weight. Nothing when they take `limit` bits or more, which a bound often tells before the search.
std::optional<SlicePlan> planSlices(const CodedSection& section, uint64_t limit);

}  // namespace carina::npu::swd
