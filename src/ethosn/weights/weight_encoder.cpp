// SPDX-License-Identifier: Apache-2.0
#include "ethosn/weights/weight_encoder.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace carina::ethosn {
namespace {

constexpr size_t kMaxSymbols = (1U << 17) - 1;  // of an OFM
constexpr uint32_t kMaxSymbol = 511;
constexpr uint32_t kMaxQuotient = 31;
constexpr uint32_t kMaxOffset = 31;
constexpr int kZeroDivisors = 4, kWeightDivisors = 6;  // 0..3, 0..5
constexpr uint32_t kTooMuch = UINT32_MAX;

/// Ordered by magnitude, negative before positive: 0, -1, 1, -2, 2, ...
uint16_t symbolOf(int16_t weight) {
  return static_cast<uint16_t>(2 * std::abs(weight) - (weight < 0 ? 1 : 0));
}

int16_t weightOf(uint16_t symbol) {
  const auto magnitude = static_cast<int16_t>((symbol + 1) / 2);
  return symbol % 2 != 0 ? static_cast<int16_t>(-magnitude) : magnitude;
}

struct Chunks {
  explicit Chunks(int32_t inputs) : weights(3 * inputs / 4), half(inputs / 2) {}
  int32_t zeros(int divisor) const { return divisor < 3 ? weights : half; }
  int32_t weights, half;
};

uint32_t roundUp(uint32_t value, uint32_t step) {
  return (value + step - 1) / step * step;
}

int paletteEntryBits(std::span<const int16_t> palette) {
  int largest = 0;
  for (int16_t weight : palette) largest = std::max(largest, std::abs(weight));
  const int bits = std::max(2, static_cast<int>(std::bit_width(static_cast<unsigned>(largest))));
  return largest > 1 ? bits + 1 : bits;
}

struct Counted {
  uint32_t symbol, count;
};

/// What is to be encoded for one OFM.
struct Statistics {
  std::vector<Counted> symbols;  // those that occur, ascending, before palette and offset
  std::vector<uint32_t> runs;    // zeros before each nonzero weight, and after the last
  bool withZeros() const { return !symbols.empty() && symbols.front().symbol == 0; }
  /// Those that are coded as weights.
  std::span<const Counted> coded(bool withRuns) const {
    return std::span(symbols).subspan(withRuns && withZeros() ? 1 : 0);
  }
};

Statistics statisticsOf(std::span<const int16_t> weights) {
  Statistics out;
  std::array<uint32_t, kMaxSymbol + 1> count{};
  uint32_t run = 0;
  for (int16_t weight : weights) {
    ++count[symbolOf(weight)];
    if (weight == 0) {
      ++run;
    } else {
      out.runs.push_back(run);
      run = 0;
    }
  }
  out.runs.push_back(run);
  for (uint32_t symbol = 0; symbol <= kMaxSymbol; ++symbol) {
    if (count[symbol] != 0) out.symbols.push_back({symbol, count[symbol]});
  }
  return out;
}

/// A symbol as mapped by palette and offset; above kMaxSymbol if it has no code.
class SymbolMap {
 public:
  explicit SymbolMap(const WeightCompression& code) : base_(code.palette.size()), offset_(code.offset) {
    index_.fill(kNotInPalette);
    for (size_t i = code.palette.size(); i-- > 0;)
      index_[symbolOf(code.palette[i])] = static_cast<uint8_t>(i);
  }
  uint32_t operator()(uint32_t symbol) const {
    if (index_[symbol] != kNotInPalette) return index_[symbol];
    return symbol < offset_ ? kTooMuch : static_cast<uint32_t>(symbol + base_ - offset_);
  }

 private:
  static constexpr uint8_t kNotInPalette = 255;
  std::array<uint8_t, kMaxSymbol + 1> index_;
  size_t base_, offset_;
};

uint32_t costOfRuns(const Statistics& statistics, int divisor, const Chunks& chunks) {
  uint32_t unary = 0;
  for (uint32_t run : statistics.runs) unary += (run >> divisor) + 1;
  return roundUp(unary, static_cast<uint32_t>(chunks.zeros(divisor))) +
         static_cast<uint32_t>(statistics.runs.size()) * static_cast<uint32_t>(divisor);
}

/// Bits of a plain symbol; 0 if the palette does not hold every weight.
int plainBits(const WeightCompression& code, uint32_t largest) {
  if (code.palette.empty()) return std::max(2, static_cast<int>(std::bit_width(largest)));
  if (largest >= code.palette.size()) return 0;
  return std::max(1, static_cast<int>(std::bit_width(code.palette.size() - 1)));
}

/// Bits of the weights with a divisor, with or without truncation, or kTooMuch.
uint32_t costOfWeights(std::span<const Counted> symbols, int divisor, bool truncated, const Chunks& chunks) {
  uint32_t first = 0, second = 0, remainders = 0;
  for (const Counted& mapped : symbols) {
    const uint32_t quotient = mapped.symbol >> divisor;
    if (quotient > (truncated ? 2 : kMaxQuotient)) return kTooMuch;
    first += (truncated ? 1 : quotient / 2 + 1) * mapped.count;
    second += (truncated ? std::min(quotient, 1U) : (quotient + 1) / 2) * mapped.count;
    remainders += static_cast<uint32_t>(divisor) * mapped.count;
  }
  return roundUp(first, static_cast<uint32_t>(chunks.weights)) + second + remainders;
}

uint32_t costOfPlain(std::span<const Counted> symbols, int bits) {
  uint32_t count = 0;
  for (const Counted& mapped : symbols) count += mapped.count;
  return count * static_cast<uint32_t>(bits);
}

std::vector<Counted> mapSymbols(const Statistics& statistics, const WeightCompression& code) {
  const SymbolMap map(code);
  std::vector<Counted> out;
  for (const auto& [symbol, count] : statistics.coded(code.zeroDivisor != WeightCompression::kNone))
    out.push_back({map(symbol), count});
  return out;
}

uint32_t largestOf(std::span<const Counted> symbols) {
  uint32_t largest = 0;
  for (const Counted& mapped : symbols) largest = std::max(largest, mapped.symbol);
  return largest;
}

/// Bits of the OFM with the given parameters, or kTooMuch if they cannot encode it.
uint32_t costWith(const Statistics& statistics, const WeightCompression& code, const Chunks& chunks) {
  const std::vector<Counted> symbols = mapSymbols(statistics, code);
  const uint32_t largest = largestOf(symbols);
  if (largest > kMaxSymbol) return kTooMuch;
  uint32_t cost = 0;
  if (code.weightDivisor == WeightCompression::kNone) {
    const int bits = plainBits(code, largest);
    if (bits == 0 || (code.palette.empty() && bits > code.symbolBits)) return kTooMuch;
    cost = costOfPlain(symbols, code.palette.empty() ? code.symbolBits : bits);
  } else {
    cost = costOfWeights(symbols, code.weightDivisor, code.truncated, chunks);
    if (cost == kTooMuch) return kTooMuch;
  }
  return cost + (code.zeroDivisor == WeightCompression::kNone
                     ? 0
                     : costOfRuns(statistics, code.zeroDivisor, chunks));
}

uint32_t reloadCost(const WeightCompression& code) {
  return 3 + 3 + 1 + 5 + 1 + 5 + 3 +
         static_cast<uint32_t>(code.palette.size()) * static_cast<uint32_t>(code.symbolBits);
}

/// Bits of a chunk, the first one least significant.
struct Bits {
  uint64_t value = 0;
  int count = 0;
  void add(bool bit) { value |= uint64_t{bit} << count++; }
};

struct Choice {
  WeightCompression code;
  uint32_t cost = kTooMuch;
  void offer(const WeightCompression& candidate, uint32_t bits) {
    if (bits == kTooMuch) return;
    const uint32_t total = bits + reloadCost(candidate);
    if (total < cost) *this = {candidate, total};
  }
};

/// Tries all divisors with the palette and zero runs of `code`.
void tryDivisors(const Statistics& statistics, WeightCompression code, uint32_t runs, const Chunks& chunks,
                 Choice& best) {
  // The offset maps the smallest symbol outside the palette to the first code after it.
  std::vector<Counted> symbols = mapSymbols(statistics, code);
  uint32_t smallest = kTooMuch;
  const auto entries = static_cast<uint32_t>(code.palette.size());
  for (const Counted& mapped : symbols) {
    if (mapped.symbol >= entries) smallest = std::min(smallest, mapped.symbol - entries);
  }
  const bool withRuns = code.zeroDivisor != WeightCompression::kNone;
  code.offset =
      static_cast<uint8_t>(smallest == kTooMuch ? (withRuns ? 1 : 0) : std::min(smallest, kMaxOffset));
  for (Counted& mapped : symbols) {
    if (mapped.symbol >= entries) mapped.symbol -= code.offset;
  }
  const uint32_t largest = largestOf(symbols);
  if (largest > kMaxSymbol) return;
  if (!code.palette.empty()) code.symbolBits = static_cast<uint8_t>(paletteEntryBits(code.palette));
  for (int divisor = 0; divisor < kWeightDivisors; ++divisor) {
    if (divisor > 0 && (largest >> (divisor - 1)) == 0) break;
    for (bool truncated : {false, true}) {
      if (truncated && symbols.size() > 3) continue;
      const uint32_t bits = costOfWeights(symbols, divisor, truncated, chunks);
      if (bits == kTooMuch) continue;
      code.weightDivisor = static_cast<uint8_t>(divisor);
      code.truncated = truncated;
      best.offer(code, bits + runs);
    }
  }
  if (const int bits = plainBits(code, largest); bits != 0) {
    code.weightDivisor = WeightCompression::kNone;
    code.truncated = false;
    if (code.palette.empty()) code.symbolBits = static_cast<uint8_t>(bits);
    best.offer(code, costOfPlain(symbols, bits) + runs);
  }
}

/// Values by frequency, the most frequent first.
std::vector<int16_t> byFrequency(const Statistics& statistics, bool withRuns) {
  const std::span<const Counted> coded = statistics.coded(withRuns);
  std::vector<Counted> symbols(coded.begin(), coded.end());
  std::stable_sort(symbols.begin(), symbols.end(),
                   [](const Counted& a, const Counted& b) { return a.count > b.count; });
  std::vector<int16_t> values;
  values.reserve(symbols.size());
  for (const Counted& counted : symbols) values.push_back(weightOf(static_cast<uint16_t>(counted.symbol)));
  return values;
}

Choice choose(const Statistics& statistics, const Chunks& chunks) {
  Choice best;
  for (bool withRuns : {false, true}) {
    if (withRuns && !statistics.withZeros()) continue;
    WeightCompression code;
    uint32_t runs = 0;
    if (withRuns) {
      runs = kTooMuch;
      for (int divisor = 0; divisor < kZeroDivisors; ++divisor) {
        const uint32_t bits = costOfRuns(statistics, divisor, chunks);
        if (bits >= runs) continue;
        runs = bits;
        code.zeroDivisor = static_cast<uint8_t>(divisor);
      }
    }
    const std::vector<int16_t> values = byFrequency(statistics, withRuns);
    for (size_t size : {size_t{0}, size_t{2}, size_t{4}, size_t{8}, size_t{16}, size_t{32}, values.size()}) {
      if (size > 32) continue;
      code.palette.assign(values.begin(),
                          values.begin() + static_cast<ptrdiff_t>(std::min(size, values.size())));
      // A palette of one value cannot be encoded; an unused second entry is added.
      if (code.palette.size() == 1) code.palette.push_back(0);
      tryDivisors(statistics, code, runs, chunks, best);
    }
  }
  return best;
}

}  // namespace

OfmScale ofmScale(double ratio, int32_t zeroPoint) {
  OfmScale out;
  out.zeroPoint = static_cast<int8_t>(zeroPoint);
  CARINA_CHECK(ratio >= 0 && ratio < 65536, "a ratio of scales fits 16 bits");
  if (ratio == 0) return out;
  int shift = std::min(47, 16 - std::ilogb(ratio) - 1);
  long scale = std::lround(std::ldexp(ratio, shift));
  if (scale == 65536) {
    if (shift == 0) {
      scale = 65535;
    } else {
      scale = 32768;
      --shift;
    }
  }
  out.scale = static_cast<uint16_t>(scale);
  out.shift = static_cast<uint8_t>(shift);
  return out;
}

void WeightEncoder::put(uint64_t value, int bits) {
  while (bits > 0) {
    const int used = static_cast<int>(position_ % 8), taken = std::min(8 - used, bits);
    if (used == 0) bytes_.push_back(0);
    bytes_.back() = static_cast<uint8_t>(bytes_.back() | (value & ((1U << taken) - 1)) << used);
    value >>= taken;
    bits -= taken;
    position_ += static_cast<size_t>(taken);
  }
}

void WeightEncoder::putHeader(const OfmWeights& ofm, size_t symbols, const WeightCompression& code) {
  put(0, 16);  // length; filled in by append
  put(static_cast<uint32_t>(ofm.bias), 32);
  const bool newScale = scale_ != ofm.scale;
  put(newScale ? 1 : 0, 1);
  if (newScale) {
    put(ofm.scale.scale, 16);
    put(ofm.scale.shift, 6);
    put(static_cast<uint8_t>(ofm.scale.zeroPoint), 8);
    scale_ = ofm.scale;
  }
  put(static_cast<uint32_t>(symbols), 17);
  const auto sameAs = [&code](const WeightCompression& other) {
    return code.zeroDivisor == other.zeroDivisor && code.weightDivisor == other.weightDivisor &&
           code.truncated == other.truncated && code.offset == other.offset;
  };
  const bool samePalette = code_ && code_->palette == code.palette && code_->symbolBits == code.symbolBits;
  const bool reload = !samePalette || !sameAs(*code_);
  put(reload ? 1 : 0, 1);
  if (!reload) return;
  put(code.zeroDivisor, 3);
  put(code.weightDivisor, 3);
  put(code.truncated ? 1 : 0, 1);
  put(code.offset, 5);
  put(samePalette ? 0 : 1, 1);
  if (!samePalette) {
    put(code.palette.empty() ? 0 : static_cast<uint32_t>(code.palette.size() - 1), 5);
    put(static_cast<uint32_t>(code.symbolBits - 2), 3);
    for (int16_t weight : code.palette) {
      put(static_cast<uint32_t>(std::abs(weight)) | (weight < 0 ? 1U << (code.symbolBits - 1) : 0U),
          code.symbolBits);
    }
  }
  code_ = code;
}

/// Weights and zero runs are written in chunks: the quotients of both, then the remainders of what the
/// preceding chunk completed.
void WeightEncoder::putSymbols(std::span<const uint16_t> symbols, std::span<const uint32_t> runs,
                               const WeightCompression& code) {
  const Chunks chunks(inputs_);
  const bool plain = code.weightDivisor == WeightCompression::kNone;
  const int weightBits = !plain ? code.weightDivisor
                         : code.palette.empty()
                             ? code.symbolBits
                             : std::max(1, static_cast<int>(std::bit_width(code.palette.size() - 1)));
  const bool withRuns = code.zeroDivisor != WeightCompression::kNone;
  const int32_t weightRoom = plain && weightBits > 5 ? chunks.half : chunks.weights;
  const int32_t zeroRoom = chunks.zeros(code.zeroDivisor);
  size_t weightsDone = 0, zerosDone = 0;
  int32_t weightLeft = -1, zeroLeft = -1;  // rest of the current quotient; -1: none
  std::vector<uint32_t> weightRest, zeroRest, weightRestBefore, zeroRestBefore;
  for (bool weightsOn = true, zerosOn = true; weightsOn || zerosOn;) {
    const int64_t balance =
        withRuns ? static_cast<int64_t>(weightsDone) - static_cast<int64_t>(zerosDone) : 0;
    weightsOn = balance < chunks.half && weightsDone < symbols.size();
    zerosOn = withRuns && balance >= 0 && zerosDone < runs.size();
    Bits first, second, zeros;
    for (int32_t used = 0; weightsOn && used < weightRoom && weightsDone < symbols.size();) {
      const uint32_t symbol = symbols[weightsDone];
      if (weightLeft < 0) weightLeft = plain ? 0 : static_cast<int32_t>(symbol >> weightBits);
      while (weightLeft >= 0 && used < weightRoom) {
        first.add(weightLeft > 0);
        if (weightLeft > 0) second.add(weightLeft > 1);
        ++used;
        weightLeft = code.truncated ? -1 : weightLeft - 2;
      }
      if (weightLeft < 0) {
        weightLeft = -1;
        weightRest.push_back(symbol & ((1U << weightBits) - 1));
        ++weightsDone;
      }
    }
    for (int32_t used = 0; zerosOn && used < zeroRoom && zerosDone < runs.size();) {
      const uint32_t run = runs[zerosDone];
      if (zeroLeft < 0) zeroLeft = static_cast<int32_t>(run >> code.zeroDivisor);
      while (zeroLeft >= 0 && used < zeroRoom) {
        zeros.add(zeroLeft > 0);
        ++used;
        --zeroLeft;
      }
      if (zeroLeft < 0) {
        zeroRest.push_back(run & ((1U << code.zeroDivisor) - 1));
        ++zerosDone;
      }
    }
    if (weightsOn && !plain) put(first.value, weightRoom);
    if (zerosOn) put(zeros.value, zeroRoom);
    if (weightsOn && !plain) put(second.value, second.count);
    for (uint32_t rest : weightRestBefore) put(rest, weightBits);
    for (uint32_t rest : zeroRestBefore) put(rest, code.zeroDivisor);
    weightRestBefore.swap(weightRest);
    zeroRestBefore.swap(zeroRest);
    weightRest.clear();
    zeroRest.clear();
  }
}

Status WeightEncoder::append(const OfmWeights& ofm) {
  const Chunks chunks(inputs_);
  const Statistics statistics = statisticsOf(ofm.weights);
  Choice best = choose(statistics, chunks);
  if (code_ && costWith(statistics, *code_, chunks) <= best.cost) best.code = *code_;
  const SymbolMap map(best.code);
  const bool withRuns = best.code.zeroDivisor != WeightCompression::kNone;
  std::vector<uint16_t> symbols;
  for (int16_t weight : ofm.weights) {
    if (!withRuns || weight != 0) symbols.push_back(static_cast<uint16_t>(map(symbolOf(weight))));
  }
  if (symbols.size() > kMaxSymbols) {
    return fail(Code::InvalidWeights,
                "an output channel has {} weights; the length field of the stream ends at {}", symbols.size(),
                kMaxSymbols);
  }
  const size_t start = position_;
  putHeader(ofm, symbols.size(), best.code);
  putSymbols(symbols, withRuns ? std::span<const uint32_t>(statistics.runs) : std::span<const uint32_t>(),
             best.code);
  const size_t words = (position_ + 127) / 128 - start / 128;
  for (size_t i = 0; i < 16; ++i) {
    if (((words >> i) & 1) != 0) {
      bytes_[(start + i) / 8] = static_cast<uint8_t>(bytes_[(start + i) / 8] | (1U << ((start + i) % 8)));
    }
  }
  return {};
}

}  // namespace carina::ethosn
