// SPDX-License-Identifier: Apache-2.0
// Decodes weight streams. The stream of one output generator (OG) holds the OFMs of that generator one after
// the other, without alignment; the generator keeps scale, compression parameters and palette from one OFM to
// the next, and from one stripe to the next.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace carina::ethosn {

/// How the results of an OFM are converted to 8 bits: round(acc * scale / 2^shift) + zero point.
struct OfmScale {
  uint16_t scale = 0;
  uint8_t shift = 0;
  int8_t zeroPoint = 0;  // as stored in the stream; for unsigned results the same 8 bits
  friend bool operator==(const OfmScale&, const OfmScale&) = default;
};

struct WeightCompression {
  static constexpr uint8_t kNone = 7;
  uint8_t zeroDivisor = kNone;    // log2 of the divisor of zero runs; kNone: zeros are coded as weights
  uint8_t weightDivisor = kNone;  // log2 of the divisor of weight symbols; kNone: symbols of `symbolBits`
  bool truncated = false;         // quotients are at most 2 and have no terminator
  uint8_t offset = 0;             // subtracted from symbols that are not in the palette
  uint8_t symbolBits = 2;
  std::vector<int16_t> palette;
};

/// What an OG keeps between OFMs.
struct OgState {
  std::optional<OfmScale> scale;
  std::optional<WeightCompression> compression;
};

struct DecodedOfm {
  int32_t bias = 0;
  OfmScale scale;
  std::vector<int16_t> weights;  // minus the zero point, -255..255, in the order of the stream
};

/// Reads the OFMs of one stream in order.
class WeightDecoder {
 public:
  /// `inputs`: channels that the hardware processes at once (Variant::igs). `stream` begins with the first
  /// OFM of a stripe.
  WeightDecoder(std::span<const uint8_t> stream, int32_t inputs, OgState& state)
      : stream_(stream), inputs_(inputs), state_(state) {}

  /// The next OFM, which must have exactly `count` weights. Fails with the bit offset on anything that no
  /// encoder produces.
  Result<DecodedOfm> next(size_t count);

  size_t bitOffset() const { return position_; }
  /// Replaces the stream by the same bytes followed by more.
  void extend(std::span<const uint8_t> stream) { stream_ = stream; }

 private:
  Result<uint32_t> bits(int count);
  Status readCompression();
  Status readSymbols(size_t symbols, size_t count, std::vector<uint16_t>& weights,
                     std::vector<uint32_t>& runs);
  Status joinWeights(std::span<const uint16_t> symbols, std::span<const uint32_t> runs, size_t count,
                     std::vector<int16_t>& out) const;
  Error at(Error error) const;

  std::span<const uint8_t> stream_;
  size_t position_ = 0;  // bits
  int32_t inputs_;
  OgState& state_;
};

}  // namespace carina::ethosn
