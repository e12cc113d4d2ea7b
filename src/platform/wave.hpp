// SPDX-License-Identifier: Apache-2.0
// Sound in WAV files: integers of 8 to 32 bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::platform {

struct Wave {
  uint32_t channels = 1, rate = 0, bits = 16;
  std::vector<uint8_t> data;  // samples as in the file: frames of `channels`, little-endian

  uint32_t frameBytes() const { return channels * (bits / 8); }
  uint64_t frames() const { return data.size() / frameBytes(); }
  /// A sample converted to 16 bits. `channel` beyond the last one: the last one.
  int16_t sample16(uint64_t frame, uint32_t channel) const;
};

/// Error: not a WAV file with 1 to 32 channels of 8, 16, 24 or 32-bit integers.
Result<Wave> readWave(ByteSpan file);
std::string wavOf(const Wave& wave);

}  // namespace carina::platform
