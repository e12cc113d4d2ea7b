// SPDX-License-Identifier: Apache-2.0
// Fast weight streams: fixed-width codes after a 32-byte header.
#include "npu/weights/fwd.hpp"

#include <algorithm>
#include <array>

namespace carina::npu {
namespace {

constexpr size_t kHeaderBytes = 32, kFwdAlignment = 32, kTableEntries = 16;
constexpr size_t kTableBit = 112, kEntryBits = 9, kZeroAdjustByte = 13;

uint32_t foldWeight(int16_t w) {
  return w < 0 ? static_cast<uint32_t>(-2 * w + 1) : static_cast<uint32_t>(2 * w);
}
int16_t unfoldWeight(uint32_t folded) {
  const auto magnitude = static_cast<int16_t>(folded >> 1);
  return (folded & 1u) != 0 ? static_cast<int16_t>(-magnitude) : magnitude;
}

/// Distinct values in order of appearance; stops when there are more than a table holds.
std::vector<int16_t> distinctValues(std::span<const int16_t> weights) {
  std::array<bool, 1024> seen{};
  std::vector<int16_t> values;
  for (const int16_t w : weights) {
    bool& known = seen[static_cast<size_t>(w + 512) & 1023];
    if (known) continue;
    known = true;
    values.push_back(w);
    if (values.size() > kTableEntries) break;
  }
  return values;
}

void putBits(std::vector<uint8_t>& bytes, size_t bit, uint32_t value, size_t count) {
  for (size_t n = 0; n < count; ++n) {
    if ((value >> n & 1u) != 0) bytes[(bit + n) / 8] |= static_cast<uint8_t>(1u << (bit + n) % 8);
  }
}

}  // namespace

Result<std::vector<uint8_t>> encodeFwd(std::span<const int16_t> weights, bool sparse) {
  int low = 0, high = 0;
  for (const int16_t w : weights) {
    low = std::min<int>(low, w);
    high = std::max<int>(high, w);
  }
  if (low < -255 || high > 255)
    return fail(Code::InvalidWeights, "weights reach {}..{}, but the hardware supports -255..255", low, high);
  const std::vector<int16_t> table = distinctValues(weights);
  const bool raw = sparse || table.size() > kTableEntries;
  const size_t codeBits = raw ? 8 : table.size() <= 4 ? 2 : 4;
  int zeroAdjust = 0;
  if (raw) {
    if (high - low >= 256)
      return fail(Code::InvalidWeights, "weights {}..{} do not fit the 8 bits of a fast weight stream", low,
                  high);
    zeroAdjust = low < -128 ? -128 - low : high > 127 ? 127 - high : 0;
  }
  const size_t payload = (weights.size() * codeBits + 7) / 8;
  std::vector<uint8_t> bytes((kHeaderBytes + payload + kFwdAlignment - 1) / kFwdAlignment * kFwdAlignment, 0);
  bytes[0] = static_cast<uint8_t>((raw ? 1 : 0) | (!raw && codeBits == 2 ? 2 : 0));
  bytes[kZeroAdjustByte] = static_cast<uint8_t>(zeroAdjust);
  if (raw) {
    for (size_t n = 0; n < weights.size(); ++n)
      bytes[kHeaderBytes + n] = static_cast<uint8_t>(weights[n] + zeroAdjust);
    return bytes;
  }
  std::array<uint8_t, 1024> codeOf{};
  for (size_t n = 0; n < table.size(); ++n) {
    putBits(bytes, kTableBit + n * kEntryBits, foldWeight(table[n]), kEntryBits);
    codeOf[static_cast<size_t>(table[n] + 512)] = static_cast<uint8_t>(n);
  }
  const size_t perByte = 8 / codeBits;
  for (size_t n = 0; n < weights.size(); ++n) {
    bytes[kHeaderBytes + n / perByte] |=
        static_cast<uint8_t>(codeOf[static_cast<size_t>(weights[n] + 512)] << (n % perByte * codeBits));
  }
  return bytes;
}

Result<std::vector<int16_t>> decodeFwd(ByteSpan stream, size_t count) {
  if (stream.size() < kHeaderBytes)
    return fail(Code::InvalidWeights, "fast weight stream of {} bytes has no header", stream.size());
  const auto byteAt = [&](size_t n) { return static_cast<uint32_t>(stream[n]); };
  const bool raw = (byteAt(0) & 1u) != 0, small = (byteAt(0) & 2u) != 0;
  const size_t codeBits = raw ? 8 : small ? 2 : 4, perByte = 8 / codeBits;
  const size_t capacity = (stream.size() - kHeaderBytes) * perByte;
  if (count > capacity) {
    return fail(Code::InvalidWeights,
                "fast weight stream of {} bytes holds {} weights at most, the operation consumes {}",
                stream.size(), capacity, count);
  }
  std::vector<int16_t> weights(count);
  if (raw) {
    const auto zeroAdjust = static_cast<int8_t>(byteAt(kZeroAdjustByte));
    for (size_t n = 0; n < count; ++n) {
      weights[n] = static_cast<int16_t>(static_cast<int8_t>(byteAt(kHeaderBytes + n)) - zeroAdjust);
    }
    return weights;
  }
  std::array<int16_t, kTableEntries> table{};
  for (size_t n = 0; n < kTableEntries; ++n) {
    const size_t bit = kTableBit + n * kEntryBits;
    const uint32_t word = byteAt(bit / 8) | byteAt(bit / 8 + 1) << 8;
    table[n] = unfoldWeight(word >> bit % 8 & 0x1ffu);
  }
  const uint32_t mask = (1u << codeBits) - 1;
  for (size_t n = 0; n < count; ++n) {
    weights[n] = table[byteAt(kHeaderBytes + n / perByte) >> (n % perByte * codeBits) & mask];
  }
  return weights;
}

}  // namespace carina::npu
