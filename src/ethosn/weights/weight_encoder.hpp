// SPDX-License-Identifier: Apache-2.0
// Encodes the weight stream of one output generator (OG): the inverse of weight_decoder.hpp. Compression
// parameters are chosen per OFM by their exact cost: zero runs or none, palettes, Golomb-Rice divisors,
// truncation, offset, or plain symbols. Those of the preceding OFM are kept if that is cheaper than loading
// new ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "ethosn/weights/weight_decoder.hpp"

namespace carina::ethosn {

/// Multiplier and shift of `ratio` (input scale x weight scale / output scale, 0 <= ratio < 65536): 16
/// significant bits.
OfmScale ofmScale(double ratio, int32_t zeroPoint);

struct OfmWeights {
  int32_t bias = 0;
  OfmScale scale;
  std::vector<int16_t> weights;  // minus the zero point, -255..255, in the order of the stream
};

class WeightEncoder {
 public:
  /// `inputs`: channels that the hardware processes at once (Variant::igs), at most 64.
  explicit WeightEncoder(int32_t inputs) : inputs_(inputs) {
    CARINA_CHECK(inputs > 0 && inputs <= 64, "the bits of a chunk fit one word");
  }

  /// Fails if an OFM has more symbols than its length field can represent.
  Status append(const OfmWeights& ofm);

  /// Whole bytes; the last one is padded with zero bits.
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  /// The bits of `value` above these are ignored.
  void put(uint64_t value, int bits);
  void putHeader(const OfmWeights& ofm, size_t symbols, const WeightCompression& code);
  void putSymbols(std::span<const uint16_t> symbols, std::span<const uint32_t> runs,
                  const WeightCompression& code);

  int32_t inputs_;
  std::vector<uint8_t> bytes_;
  size_t position_ = 0;  // bits
  std::optional<OfmScale> scale_;
  std::optional<WeightCompression> code_;
};

}  // namespace carina::ethosn
