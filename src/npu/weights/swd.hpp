// SPDX-License-Identifier: Apache-2.0
// The standard weight stream (SWD): Golomb-Rice coded palette indices with optional zero runs. Used by U55,
// U65 and U85. A stream holds signed weights -255..255 in stream order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::npu {

/// How hard the encoder searches for short codes; the streams decode to the same weights.
enum class CodingEffort : uint8_t { Low, Normal, High };

/// Encodes one stream; the result is a multiple of 16 bytes and ends with the end-of-stream mark. Weights
/// must be in -255..255 (checked by orderWeights; a CHECK here). Empty input yields only an end mark.
std::vector<uint8_t> encodeSwd(std::span<const int16_t> weights, CodingEffort effort = CodingEffort::Normal);

/// The same without a copy of the weights, which are overwritten: a stream may hold 100 million.
std::vector<uint8_t> encodeSwdInPlace(std::span<int16_t> weights, CodingEffort effort = CodingEffort::Normal);

/// Decodes up to and including the end mark(s). `maxWeights` bounds the result: a stream that holds more is
/// an error, as are illegal headers and a stream that ends inside a slice.
Result<std::vector<int16_t>> decodeSwd(ByteSpan stream, size_t maxWeights);

/// One slice header of a stream, for reports and the disassembler.
struct SwdSlice {
  uint32_t bitOffset = 0;
  int zdiv = 0;     // 0..3, 6: no zero runs
  int weights = 0;  // coded
  int wdiv = 0;     // 0..5, 7: raw
  bool truncated = false;
  bool newPalette = false;
  int directOffset = 0, paletteEntries = 0, paletteBits = 0;
};
Result<std::vector<SwdSlice>> swdSlices(ByteSpan stream);

}  // namespace carina::npu
