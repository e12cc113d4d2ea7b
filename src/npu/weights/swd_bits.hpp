// SPDX-License-Identifier: Apache-2.0
// Bit strings, least significant bit first.
#pragma once

#include <cstdint>
#include <cstring>

namespace carina::npu::swd {

/// Appends bits, least significant first. The caller provides memory for all of them plus eight bytes, which
/// put() may overwrite.
struct BitCursor {
  static constexpr int kMaxBits = 56;

  uint8_t* at = nullptr;
  uint64_t pending = 0;  // the bits after the last whole byte
  int filled = 0;        // number of pending bits, less than 8

  /// At most kMaxBits; the value's higher bits are zero.
  void put(uint64_t value, int count) {
    pending |= value << filled;
    std::memcpy(at, &pending, sizeof(pending));
    filled += count;
    at += filled >> 3;
    pending >>= filled & ~7;
    filled &= 7;
  }
};

/// Reads bits in the order in which they were appended. The memory after the last one is zero.
struct BitSource {
  const uint8_t* bytes = nullptr;
  uint64_t at = 0;

  /// At most BitCursor::kMaxBits.
  uint64_t take(int count) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at / 8, sizeof(word));
    word >>= at % 8;
    at += static_cast<uint64_t>(count);
    return word & ((uint64_t{1} << count) - 1);
  }
};

}  // namespace carina::npu::swd
