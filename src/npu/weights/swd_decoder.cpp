// SPDX-License-Identifier: Apache-2.0
// Decodes standard weight streams. A slice is a series of chunks; each holds the unary parts of some symbols
// and the remainders of the symbols that the previous chunk completed. Weights and zero runs advance in
// parallel under a flow control that encoder and decoder must follow exactly.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "npu/weights/swd.hpp"

namespace carina::npu {
namespace {

constexpr int kZdivOff = 6, kZdivEnd = 7, kWdivRaw = 7;
constexpr uint32_t kMaxIndex = 511;
constexpr size_t kPadding = 64;     // bytes readable beyond the end: more than one chunk can consume
constexpr int32_t kMaxBalance = 8;  // weights may run ahead of zero runs by this many

constexpr int16_t unfold(uint32_t folded) {
  const auto magnitude = static_cast<int16_t>(folded >> 1);
  return (folded & 1u) != 0 ? static_cast<int16_t>(-magnitude) : magnitude;
}

class BitReader {
 public:
  explicit BitReader(ByteSpan stream) : bytes_(stream.size() + kPadding), bits_(uint64_t{stream.size()} * 8) {
    if (!stream.empty()) std::memcpy(bytes_.data(), stream.data(), stream.size());
  }
  /// Up to 56 bits from the current position, without moving.
  uint64_t peek() const { return at(position_); }
  uint64_t at(uint64_t position) const {
    uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + (position >> 3), sizeof(word));
    return word >> (position & 7);
  }
  uint32_t take(int count) {
    const auto value = static_cast<uint32_t>(peek() & ((uint64_t{1} << count) - 1));
    position_ += static_cast<uint64_t>(count);
    return value;
  }
  void skip(uint64_t count) { position_ += count; }
  void alignToByte() { position_ = (position_ + 7) & ~uint64_t{7}; }
  uint64_t position() const { return position_; }
  bool overrun() const { return position_ > bits_; }
  uint64_t left() const { return overrun() ? 0 : bits_ - position_; }

 private:
  std::vector<uint8_t> bytes_;
  uint64_t bits_;
  uint64_t position_ = 0;
};

/// The weights that indices represent: palette entries first, then values in folded order.
struct Palette {
  bool defined = false;
  int directOffset = 0, entries = 0, bits = 2;
  std::array<int16_t, kMaxIndex + 1> weights{};
  uint32_t limit = 0;  // indices below are valid

  void read(BitReader& in) {
    defined = true;
    directOffset = static_cast<int>(in.take(5));
    const int size = static_cast<int>(in.take(5));
    entries = size == 0 ? 0 : size + 1;
    bits = static_cast<int>(in.take(3)) + 2;
    for (int n = 0; n < entries; ++n) weights[static_cast<size_t>(n)] = unfold(in.take(bits));
    limit = kMaxIndex + 1;
    for (int n = entries; n <= static_cast<int>(kMaxIndex); ++n) {
      const int folded = n - entries + directOffset;
      if (folded > static_cast<int>(kMaxIndex)) {
        limit = static_cast<uint32_t>(n);
        break;
      }
      weights[static_cast<size_t>(n)] = unfold(static_cast<uint32_t>(folded));
    }
  }
  int rawBits() const { return entries > 0 ? std::bit_width(static_cast<unsigned>(entries - 1)) : bits; }
};

struct Header {
  int zdiv = 0, weights = 0, wdiv = 0;
  bool truncated = false, newPalette = false;
};

/// Unary symbols of one kind: completed quotients of this chunk and of the previous one.
struct Symbols {
  std::array<uint32_t, 16> now{}, before{};
  int nowCount = 0, beforeCount = 0;
  uint32_t partial = 0;  // quotient of the symbol that reaches into the next chunk
  int32_t done = 0;      // completed, in this slice
  int32_t total = 0;

  void nextChunk() {
    before = now;
    beforeCount = nowCount;
    nowCount = 0;
  }
};

class Decoder {
 public:
  Decoder(ByteSpan stream, size_t maxWeights) : in_(stream), maxWeights_(maxWeights) {}

  Result<std::vector<int16_t>> decode(std::vector<SwdSlice>* slices) {
    bool zeroRuns = false;
    while (in_.left() >= 3) {
      const uint64_t start = in_.position();
      const int zdiv = static_cast<int>(in_.take(3));
      if (zdiv == kZdivEnd) {
        in_.alignToByte();
        palette_.defined = false;
        continue;
      }
      if (zdiv == 4 || zdiv == 5)
        return fail(Code::InvalidWeights, "weight stream, bit {}: illegal zero run code {}", start, zdiv);
      Header header;
      header.zdiv = zdiv;
      header.weights = static_cast<int>(in_.take(15)) + 1;
      header.wdiv = static_cast<int>(in_.take(3));
      header.truncated = in_.take(1) != 0;
      header.newPalette = in_.take(1) != 0;
      if (header.wdiv == 6)
        return fail(Code::InvalidWeights, "weight stream, bit {}: illegal weight divisor 6", start);
      if (header.newPalette) {
        palette_.read(in_);
      } else if (!palette_.defined) {
        return fail(Code::InvalidWeights, "weight stream, bit {}: the first slice defines no palette", start);
      } else if (zeroRuns != (zdiv != kZdivOff)) {
        return fail(Code::InvalidWeights, "weight stream, bit {}: zero runs change without a new palette",
                    start);
      }
      zeroRuns = zdiv != kZdivOff;
      if (slices != nullptr) {
        slices->push_back({static_cast<uint32_t>(start), zdiv, header.weights, header.wdiv, header.truncated,
                           header.newPalette, palette_.directOffset, palette_.entries, palette_.bits});
      }
      CARINA_RETURN_IF_ERROR(decodeSlice(header, start));
    }
    return std::move(out_);
  }

 private:
  Status decodeSlice(const Header& header, uint64_t start) {
    const bool raw = header.wdiv == kWdivRaw, zeroRuns = header.zdiv != kZdivOff;
    const int remainderBits = raw ? palette_.rawBits() : header.wdiv;
    const int positions = raw && remainderBits > 5 ? 8 : 12;
    const int runBits = header.zdiv == 3 ? 8 : 12;
    slice_.clear();
    runs_.clear();
    slice_.resize(static_cast<size_t>(header.weights) + 16);
    int16_t* to = slice_.data();
    Symbols w, z;
    w.total = header.weights;
    z.total = zeroRuns ? header.weights + (header.newPalette ? 1 : 0) : 0;
    bool valid = true;
    for (;;) {
      const int32_t balance = zeroRuns ? w.done - z.done : 0;
      const bool weightsOn = w.done < w.total && balance < kMaxBalance;
      const bool runsOn = zeroRuns && z.done < z.total && balance >= 0;
      w.nextChunk();
      const uint32_t unary0 = weightsOn && !raw ? in_.take(12) : 0;
      if (zeroRuns) {
        z.nextChunk();
        if (runsOn) takeRuns(in_.take(runBits), runBits, z);
      }
      if (weightsOn) {
        if (raw) {
          w.nowCount = std::min(positions, w.total - w.done);
          w.done += w.nowCount;
          std::fill_n(w.now.begin(), w.nowCount, 0u);
        } else {
          takeWeights(unary0, in_.take(std::popcount(unary0)), header.truncated, w);
        }
      }
      uint64_t position = in_.position();
      const uint64_t mask = (uint64_t{1} << remainderBits) - 1;
      for (int n = 0; n < w.beforeCount; ++n) {
        const uint64_t index =
            (uint64_t{w.before[static_cast<size_t>(n)]} << remainderBits) + (in_.at(position) & mask);
        position += static_cast<uint64_t>(remainderBits);
        valid &= index < palette_.limit;
        to[n] = palette_.weights[index & kMaxIndex];
      }
      to += w.beforeCount;
      in_.skip(static_cast<uint64_t>(w.beforeCount) * static_cast<uint64_t>(remainderBits));
      for (int n = 0; n < z.beforeCount; ++n) {
        runs_.push_back((z.before[static_cast<size_t>(n)] << header.zdiv) + in_.take(header.zdiv));
      }
      if (!valid)
        return fail(Code::InvalidWeights, "weight stream, slice at bit {}: a weight index exceeds {}", start,
                    palette_.limit - 1);
      if (in_.overrun())
        return fail(Code::InvalidWeights, "weight stream ends inside the slice at bit {}", start);
      if (!weightsOn && !runsOn) break;
    }
    return append(header, start);
  }

  static void takeWeights(uint32_t unary0, uint32_t unary1, bool truncated, Symbols& w) {
    uint32_t quotient = w.partial;
    int count = 0;
    const uint32_t continues = truncated ? 0u : 1u;
    for (int n = 0; n < 12; ++n) {
      const uint32_t first = unary0 & 1u, second = unary1 & first;
      unary0 >>= 1;
      unary1 >>= first;
      quotient += first + second;
      w.now[static_cast<size_t>(count)] = quotient;
      const uint32_t open = second & continues;
      count += static_cast<int>(open ^ 1u);
      quotient &= 0u - open;
    }
    w.partial = quotient;
    w.nowCount = std::min(count, w.total - w.done);  // the rest is padding
    w.done += w.nowCount;
  }

  static void takeRuns(uint32_t unary, int bits, Symbols& z) {
    uint32_t quotient = z.partial;
    int count = 0;
    for (int n = 0; n < bits; ++n) {
      const uint32_t more = unary & 1u;
      unary >>= 1;
      quotient += more;
      z.now[static_cast<size_t>(count)] = quotient;
      count += static_cast<int>(more ^ 1u);
      quotient &= 0u - more;
    }
    z.partial = quotient;
    z.nowCount = std::min(count, z.total - z.done);
    z.done += z.nowCount;
  }

  /// Appends the slice's weights, interleaved with its zero runs, to the output.
  Status append(const Header& header, uint64_t start) {
    size_t total = static_cast<size_t>(header.weights);
    for (const uint32_t run : runs_) total += run;
    if (total > maxWeights_ - out_.size()) {
      return fail(Code::InvalidWeights,
                  "weight stream, slice at bit {}: holds more than the expected {} weights", start,
                  maxWeights_);
    }
    if (runs_.empty()) {
      out_.insert(out_.end(), slice_.begin(), slice_.begin() + header.weights);
      return {};
    }
    const size_t at = out_.size();
    out_.resize(at + total);
    int16_t* to = out_.data() + at;
    const uint32_t* run = runs_.data();
    if (header.newPalette) to += *run++;
    for (int n = 0; n < header.weights; ++n) {
      *to++ = slice_[static_cast<size_t>(n)];
      to += *run++;
    }
    return {};
  }

  BitReader in_;
  size_t maxWeights_;
  Palette palette_;
  std::vector<int16_t> out_, slice_;
  std::vector<uint32_t> runs_;
};

}  // namespace

Result<std::vector<int16_t>> decodeSwd(ByteSpan stream, size_t maxWeights) {
  return Decoder(stream, maxWeights).decode(nullptr);
}

Result<std::vector<SwdSlice>> swdSlices(ByteSpan stream) {
  std::vector<SwdSlice> slices;
  // Zero runs cost at least one bit per eight zeros, which bounds what a stream can hold.
  CARINA_TRY(const std::vector<int16_t> weights, Decoder(stream, stream.size() * 64 + 64).decode(&slices));
  (void)weights;
  return slices;
}

}  // namespace carina::npu
