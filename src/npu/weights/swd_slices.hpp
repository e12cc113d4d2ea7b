// SPDX-License-Identifier: Apache-2.0
// Divides a section (a sequence of weights with one palette) into slices, each with its own Golomb-Rice
// parameters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "npu/weights/swd_code.hpp"

namespace carina::npu::swd {

/// A section ready for coding: its folded weights or, with zero runs, those of them that are coded and the
/// runs around them (one run more than weights: before the first, then after each).
struct CodedSection {
  /// The folded weights are referenced and must stay valid.
  CodedSection(std::span<const uint16_t> folded, SectionCode sectionCode);
  CodedSection(CodedSection&&) = default;
  CodedSection& operator=(CodedSection&&) = default;

  SectionCode code;
  std::array<uint16_t, kFoldedValues> indexOf;  // palette index of each value
  std::span<const uint16_t> values;
  std::vector<uint16_t> nonZero;  // with zero runs, the storage of `values`
  std::vector<uint32_t> runs;
};

/// Positions of the unary parts in a chunk: of weights, and of zero runs by mode.
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

/// Cheapest parameters over the section: dynamic programming over groups of weights, then moving the cuts to
/// the best weight. Nothing if they take `limit` bits or more, which a lower bound often shows before the
/// search.
std::optional<SlicePlan> planSlices(const CodedSection& section, uint64_t limit);

}  // namespace carina::npu::swd
