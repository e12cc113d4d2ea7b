// SPDX-License-Identifier: Apache-2.0
// Writes the sections of a standard weight stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "npu/weights/swd_bits.hpp"
#include "npu/weights/swd_slices.hpp"

namespace carina::npu::swd {

class StreamWriter {
 public:
  /// `bits`: total of all sections.
  explicit StreamWriter(uint64_t bits);
  void write(const CodedSection& section, std::span<const Slice> slices);
  /// The stream with its end mark, padded with ones to a byte boundary.
  std::vector<uint8_t> finish();

 private:
  /// Memory for a bit string that is distributed over the chunks of a slice.
  class Buffer {
   public:
    /// `bits`: the maximum that may be put.
    BitCursor start(uint64_t bits);
    /// The bits that were put.
    BitSource end(BitCursor cursor);

   private:
    std::vector<uint8_t> bytes_;
  };

  void writeHeader(const CodedSection& section, const Slice& slice, bool newPalette);
  void write(const CodedSection& section, const Slice& slice, bool newPalette);

  std::vector<uint8_t> bytes_;
  BitCursor out_;
  Buffer unary_, rests_, runUnary_, runRests_;
};

}  // namespace carina::npu::swd
