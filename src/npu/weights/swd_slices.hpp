// SPDX-License-Identifier: Apache-2.0
// Cuts a section (a stretch with one palette) into slices, each with its own Golomb-Rice parameters, and
// writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "npu/weights/swd_code.hpp"

namespace carina::npu::swd {

/// A section ready to be coded: palette indices of the coded weights and, with zero runs, the runs around
/// them (one more than weights: before the first, then behind each).
struct CodedSection {
  SectionCode code;
  std::vector<uint16_t> own;  // memory of the indices, where they do not lie elsewhere
  std::span<const uint16_t> indices;
  std::vector<uint32_t> runs;
};

/// Applies the code to folded weights.
CodedSection codeSection(std::span<const uint16_t> folded, SectionCode code);
/// The same with the indices in the place of the weights.
CodedSection codeSectionInPlace(std::span<uint16_t> folded, SectionCode code);

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

/// Least significant bit first. finish() leaves the written bytes in the vector.
class BitWriter {
 public:
  explicit BitWriter(std::vector<uint8_t>& out) : out_(out), used_(out.size()) {}
  void put(uint64_t value, int count) {  // count <= 32
    accumulator_ |= value << filled_;
    filled_ += count;
    if (filled_ >= 32) flushWord();
  }
  /// Ends with ones up to a byte boundary.
  void finish() {
    if (filled_ % 8 != 0) put(0xffu >> filled_ % 8, 8 - filled_ % 8);
    if (used_ + 8 > out_.size()) out_.resize(used_ + 8);
    for (; filled_ > 0; filled_ -= 8) {
      out_[used_++] = static_cast<uint8_t>(accumulator_);
      accumulator_ >>= 8;
    }
    out_.resize(used_);
  }

 private:
  void flushWord() {
    if (used_ + 4 > out_.size()) out_.resize(out_.size() * 2 + 64);
    for (size_t n = 0; n < 4; ++n) out_[used_ + n] = static_cast<uint8_t>(accumulator_ >> (8 * n));
    used_ += 4;
    accumulator_ >>= 32;
    filled_ -= 32;
  }
  std::vector<uint8_t>& out_;
  size_t used_;
  uint64_t accumulator_ = 0;
  int filled_ = 0;
};

void writeSection(const CodedSection& section, std::span<const Slice> slices, BitWriter& out);

}  // namespace carina::npu::swd
