// SPDX-License-Identifier: Apache-2.0
// Cuts a section (a stretch with one palette) into slices, each with its own Golomb-Rice parameters, and writes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "npu/weights/swd_code.hpp"

namespace carina::npu::swd {

/// A section ready to be coded: palette indices of the coded weights and, with zero runs, the runs around them
/// (one more than weights: before the first, then behind each).
struct CodedSection {
  SectionCode code;
  std::vector<uint16_t> indices;
  std::vector<uint32_t> runs;
};

/// Applies the code to folded weights.
CodedSection codeSection(std::span<const uint16_t> folded, SectionCode code);

struct Slice {
  uint32_t begin = 0, end = 0;  // coded weights
  IndexCode indexCode;
  int zeroRunMode = 0;
};

struct SlicePlan {
  std::vector<Slice> slices;
  uint64_t bits = 0;  // exact size of the section
};

/// Cheapest parameters over the section: dynamic programming over groups of weights, cuts moved to the best weight.
SlicePlan planSlices(const CodedSection& section);

/// Least significant bit first.
class BitWriter {
 public:
  explicit BitWriter(std::vector<uint8_t>& out) : out_(out) {}
  void put(uint64_t value, int count) {  // count <= 32
    accumulator_ |= value << filled_;
    filled_ += count;
    while (filled_ >= 8) {
      out_.push_back(static_cast<uint8_t>(accumulator_));
      accumulator_ >>= 8;
      filled_ -= 8;
    }
  }
  /// Fills the last byte with ones.
  void alignWithOnes() {
    if (filled_ > 0) put(0xffu >> filled_, 8 - filled_);
  }

 private:
  std::vector<uint8_t>& out_;
  uint64_t accumulator_ = 0;
  int filled_ = 0;
};

void writeSection(const CodedSection& section, std::span<const Slice> slices, BitWriter& out);

}  // namespace carina::npu::swd
