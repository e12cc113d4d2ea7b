// SPDX-License-Identifier: Apache-2.0
#include "ethosn/weights/weight_decoder.hpp"

#include <algorithm>
#include <bit>

namespace carina::ethosn {
namespace {

constexpr size_t kWordBits = 128;

size_t roundUp(size_t value, size_t unit) {
  return (value + unit - 1) / unit;
}

/// Symbol 2|w| - (w < 0) back to w.
int16_t fromSymbol(uint32_t symbol) {
  const auto magnitude = static_cast<int16_t>((symbol + 1) / 2);
  return static_cast<int16_t>(symbol % 2 == 1 ? -magnitude : magnitude);
}

}  // namespace

Error WeightDecoder::at(Error error) const {
  return std::move(error).at(fmt::format("bit {:#x} of the weight stream", position_));
}

Result<uint32_t> WeightDecoder::bits(int count) {
  if (position_ + static_cast<size_t>(count) > stream_.size() * 8)
    return at(fail(Code::InvalidWeights, "the weight stream ends too early"));
  uint64_t value = 0;
  const size_t first = position_ / 8, last = (position_ + static_cast<size_t>(count) + 7) / 8;
  for (size_t i = first; i < last; ++i) value |= uint64_t{stream_[i]} << (8 * (i - first));
  value >>= position_ % 8;
  position_ += static_cast<size_t>(count);
  return static_cast<uint32_t>(value & ((uint64_t{1} << count) - 1));
}

Status WeightDecoder::readCompression() {
  WeightCompression read;
  CARINA_TRY(const uint32_t zeroDivisor, bits(3));
  CARINA_TRY(const uint32_t weightDivisor, bits(3));
  CARINA_TRY(const uint32_t truncated, bits(1));
  CARINA_TRY(const uint32_t offset, bits(5));
  CARINA_TRY(const uint32_t newPalette, bits(1));
  if (zeroDivisor > 3 && zeroDivisor != WeightCompression::kNone) {
    return at(fail(Code::InvalidWeights, "unknown divisor {} of zero runs", zeroDivisor));
  }
  if (weightDivisor > 5 && weightDivisor != WeightCompression::kNone) {
    return at(fail(Code::InvalidWeights, "unknown divisor {} of weights", weightDivisor));
  }
  read.zeroDivisor = static_cast<uint8_t>(zeroDivisor);
  read.weightDivisor = static_cast<uint8_t>(weightDivisor);
  read.truncated = truncated != 0;
  read.offset = static_cast<uint8_t>(offset);
  if (newPalette == 0) {
    if (state_.compression) {
      read.palette = std::move(state_.compression->palette);
      read.symbolBits = state_.compression->symbolBits;
    }
    state_.compression = std::move(read);
    return {};
  }
  CARINA_TRY(const uint32_t last, bits(5));
  CARINA_TRY(const uint32_t width, bits(3));
  read.symbolBits = static_cast<uint8_t>(width + 2);
  if (last != 0) {
    for (uint32_t i = 0; i <= last; ++i) {
      CARINA_TRY(const uint32_t entry, bits(read.symbolBits));
      const uint32_t sign = entry >> (read.symbolBits - 1);
      const auto magnitude = static_cast<int16_t>(entry & ((1u << (read.symbolBits - 1)) - 1));
      read.palette.push_back(static_cast<int16_t>(sign != 0 ? -magnitude : magnitude));
    }
  }
  state_.compression = std::move(read);
  return {};
}

Status WeightDecoder::readSymbols(size_t symbols, size_t count, std::vector<uint16_t>& weights,
                                  std::vector<uint32_t>& runs) {
  const WeightCompression& code = *state_.compression;
  const bool plain = code.weightDivisor == WeightCompression::kNone;
  const bool rle = code.zeroDivisor != WeightCompression::kNone;
  const int threeQuarters = inputs_ * 3 / 4, half = inputs_ / 2;
  const int remainderBits = !plain ? code.weightDivisor
                            : code.palette.empty()
                                ? code.symbolBits
                                : std::max(1, static_cast<int>(std::bit_width(code.palette.size() - 1)));
  const int perChunk = plain && remainderBits > 5 ? half : threeQuarters;
  const int zeroBits = code.zeroDivisor == 3 ? half : threeQuarters;
  const size_t runCount = rle ? symbols + 1 : 0;
  weights.clear();
  runs.clear();
  // Symbols whose remainder has been read; the quotients of all symbols stored so far are complete.
  size_t weightRemainders = 0, runRemainders = 0;
  uint64_t zeros = 0;
  uint32_t weightQuotient = 0, runQuotient = 0;
  for (bool more = true; more;) {
    const int64_t balance =
        rle ? static_cast<int64_t>(weights.size()) - static_cast<int64_t>(runs.size()) : 0;
    const bool weightsOn = balance < half && weights.size() < symbols;
    const bool runsOn = rle && balance >= 0 && runs.size() < runCount;
    more = weightsOn || runsOn;
    const size_t oldWeights = weights.size(), oldRuns = runs.size();
    uint32_t unary0 = 0, unary1 = 0, zeroUnary = 0;
    if (weightsOn && !plain) {
      CARINA_TRY(unary0, bits(threeQuarters));
    }
    if (runsOn) {
      CARINA_TRY(zeroUnary, bits(zeroBits));
    }
    if (weightsOn && !plain) {
      CARINA_TRY(unary1, bits(std::popcount(unary0)));
    }
    if (weightsOn && plain) weights.resize(std::min(symbols, weights.size() + static_cast<size_t>(perChunk)));
    if (weightsOn && !plain) {
      for (int i = 0; i < threeQuarters && weights.size() < symbols; ++i) {
        bool done = true;
        if ((unary0 >> i & 1) != 0) {
          done = (unary1 & 1) == 0 || code.truncated;
          weightQuotient += 1 + (unary1 & 1);
          unary1 >>= 1;
        }
        if (!done) continue;
        if (weightQuotient > 511)
          return at(fail(Code::InvalidWeights, "the quotient of a weight is {}", weightQuotient));
        weights.push_back(static_cast<uint16_t>(weightQuotient << remainderBits));
        weightQuotient = 0;
      }
    }
    if (runsOn) {
      for (int i = 0; i < zeroBits && runs.size() < runCount; ++i) {
        if ((zeroUnary >> i & 1) != 0) {
          if (++runQuotient > count)
            return at(
                fail(Code::InvalidWeights, "a run of zeros is longer than the {} weights of the OFM", count));
          continue;
        }
        runs.push_back(runQuotient << code.zeroDivisor);
        runQuotient = 0;
      }
    }
    for (; weightRemainders < oldWeights; ++weightRemainders) {
      CARINA_TRY(const uint32_t remainder, bits(remainderBits));
      weights[weightRemainders] = static_cast<uint16_t>(weights[weightRemainders] | remainder);
    }
    for (; runRemainders < oldRuns; ++runRemainders) {
      CARINA_TRY(const uint32_t remainder, bits(code.zeroDivisor));
      runs[runRemainders] |= remainder;
      zeros += runs[runRemainders];
      if (zeros > count)
        return at(
            fail(Code::InvalidWeights, "the runs have more zeros than the {} weights of the OFM", count));
    }
  }
  return {};
}

Status WeightDecoder::joinWeights(std::span<const uint16_t> symbols, std::span<const uint32_t> runs,
                                  size_t count, std::vector<int16_t>& out) const {
  const WeightCompression& code = *state_.compression;
  out.clear();
  out.reserve(count);
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (!runs.empty()) out.insert(out.end(), runs[i], 0);
    const uint32_t symbol = symbols[i];
    if (symbol < code.palette.size()) {
      out.push_back(code.palette[symbol]);
      continue;
    }
    const size_t value = symbol - code.palette.size() + code.offset;
    if (value > 510)
      return at(fail(Code::InvalidWeights,
                     "a weight has the symbol {}, which does not represent a 9-bit weight", symbol));
    out.push_back(fromSymbol(static_cast<uint32_t>(value)));
  }
  if (!runs.empty()) out.insert(out.end(), runs.back(), 0);
  if (out.size() != count)
    return at(fail(Code::InvalidWeights, "an OFM has {} weights instead of {}", out.size(), count));
  return {};
}

Result<DecodedOfm> WeightDecoder::next(size_t count) {
  const size_t start = position_;
  CARINA_TRY(const uint32_t length, bits(16));
  DecodedOfm ofm;
  CARINA_TRY(const uint32_t bias, bits(32));
  ofm.bias = static_cast<int32_t>(bias);
  CARINA_TRY(const uint32_t newScale, bits(1));
  if (newScale != 0) {
    CARINA_TRY(const uint32_t scale, bits(16));
    CARINA_TRY(const uint32_t shift, bits(6));
    CARINA_TRY(const uint32_t zeroPoint, bits(8));
    state_.scale = OfmScale{static_cast<uint16_t>(scale), static_cast<uint8_t>(shift),
                            static_cast<int8_t>(static_cast<uint8_t>(zeroPoint))};
  }
  if (!state_.scale) return at(fail(Code::InvalidWeights, "the stream begins without a scale"));
  ofm.scale = *state_.scale;
  CARINA_TRY(const uint32_t symbols, bits(17));
  if (symbols > count)
    return at(fail(Code::InvalidWeights, "an OFM has {} weight symbols; it has {} weights", symbols, count));
  CARINA_TRY(const uint32_t newCompression, bits(1));
  if (newCompression != 0) CARINA_RETURN_IF_ERROR(readCompression());
  if (!state_.compression)
    return at(fail(Code::InvalidWeights, "the stream begins without compression parameters"));
  std::vector<uint16_t> weights;
  std::vector<uint32_t> runs;
  CARINA_RETURN_IF_ERROR(readSymbols(symbols, count, weights, runs));
  CARINA_RETURN_IF_ERROR(joinWeights(weights, runs, count, ofm.weights));
  const size_t words = roundUp(position_, kWordBits) - start / kWordBits;
  if (words != length) {
    return at(
        fail(Code::InvalidWeights, "an OFM takes {} words of 16 bytes; its header says {}", words, length));
  }
  return ofm;
}

}  // namespace carina::ethosn
