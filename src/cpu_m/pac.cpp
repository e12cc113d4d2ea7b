// SPDX-License-Identifier: Apache-2.0
#include "cpu_m/pac.hpp"

#include <bit>
#include <cstddef>

namespace carina::cpu_m {
namespace {

// A state is 16 cells of 4 bits, cell 0 the most significant; as a matrix, row by row.
constexpr int kCells = 16, kRounds = 5;
using Cells = std::array<uint8_t, kCells>;

/// Digits of pi.
constexpr std::array<uint64_t, kRounds> kRoundConstants = {
    0x0000000000000000, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89, 0x452821e638d01377};
constexpr uint64_t kAlpha = 0xc0ac29b7c97c50dd;

/// Sigma-2, which is not its own inverse.
constexpr Cells kSubstitution = {11, 6, 8, 15, 12, 0, 9, 14, 3, 7, 4, 5, 13, 2, 1, 10};
/// Tau: the source cell of each position.
constexpr Cells kShuffle = {0, 11, 6, 13, 10, 1, 12, 7, 5, 14, 3, 8, 15, 4, 9, 2};
/// The same for tweaks, and the cells that are then clocked through a shift register.
constexpr Cells kTweakShuffle = {6, 5, 14, 15, 0, 1, 2, 3, 7, 12, 13, 4, 8, 9, 10, 11};
constexpr std::array<uint8_t, 7> kClocked = {0, 1, 3, 4, 8, 11, 13};

constexpr Cells inverse(const Cells& permutation) {
  Cells result{};
  for (uint8_t i = 0; i < kCells; ++i) result[permutation[i]] = i;
  return result;
}
constexpr Cells kInverseSubstitution = inverse(kSubstitution), kInverseShuffle = inverse(kShuffle),
                kInverseTweakShuffle = inverse(kTweakShuffle);

uint64_t cell(uint64_t state, int index) {
  return state >> (60 - 4 * index) & 15;
}

uint64_t substitute(uint64_t state, const Cells& table) {
  uint64_t result = 0;
  for (int i = 0; i < kCells; ++i) result = result << 4 | table[cell(state, i)];
  return result;
}

uint64_t shuffle(uint64_t state, const Cells& from) {
  uint64_t result = 0;
  for (int i = 0; i < kCells; ++i) result = result << 4 | cell(state, from[static_cast<size_t>(i)]);
  return result;
}

/// Multiplies every column by the matrix circ(0, r, r^2, r), where r rotates a cell to the left; that is its
/// own inverse.
uint64_t mixColumns(uint64_t state) {
  constexpr std::array<int, 4> kRotations = {0, 1, 2, 1};
  uint64_t result = 0;
  for (int i = 0; i < kCells; ++i) {
    const int row = i / 4, column = i % 4;
    uint64_t sum = 0;
    for (int j = 1; j < 4; ++j) {
      const uint64_t value = cell(state, 4 * ((row + j) % 4) + column);
      const int by = kRotations[static_cast<size_t>(j)];
      sum ^= (value << by | value >> (4 - by)) & 15;
    }
    result = result << 4 | sum;
  }
  return result;
}

uint64_t clockTweak(uint64_t tweak, bool back) {
  for (const uint8_t index : kClocked) {
    const int shift = 60 - 4 * index;
    const uint64_t old = tweak >> shift & 15;
    // Forwards (b3, b2, b1, b0) becomes (b0 + b1, b3, b2, b1).
    const uint64_t fresh =
        back ? (old << 1 & 15) | ((old >> 3 ^ old) & 1) : old >> 1 | ((old ^ old >> 1) & 1) << 3;
    tweak = (tweak & ~(uint64_t{15} << shift)) | fresh << shift;
  }
  return tweak;
}
uint64_t nextTweak(uint64_t tweak) {
  return clockTweak(shuffle(tweak, kTweakShuffle), false);
}
uint64_t previousTweak(uint64_t tweak) {
  return shuffle(clockTweak(tweak, true), kInverseTweakShuffle);
}

}  // namespace

uint64_t qarma64(uint64_t plain, uint64_t tweak, uint64_t outer, uint64_t inner) {
  const uint64_t otherOuter = std::rotr(outer, 1) ^ outer >> 63;
  uint64_t state = plain ^ outer;
  for (size_t i = 0; i < size_t{kRounds}; ++i) {
    state ^= inner ^ tweak ^ kRoundConstants[i];
    if (i > 0) state = mixColumns(shuffle(state, kShuffle));  // the first round is a short one
    state = substitute(state, kSubstitution);
    tweak = nextTweak(tweak);
  }
  // The reflector between the two halves.
  state = substitute(mixColumns(shuffle(state ^ otherOuter ^ tweak, kShuffle)), kSubstitution);
  state = shuffle(mixColumns(shuffle(state, kShuffle)) ^ inner, kInverseShuffle);
  state = shuffle(mixColumns(substitute(state, kInverseSubstitution)), kInverseShuffle) ^ outer ^ tweak;
  for (size_t i = kRounds; i-- > 0;) {
    state = substitute(state, kInverseSubstitution);
    if (i > 0) state = shuffle(mixColumns(state), kInverseShuffle);
    tweak = previousTweak(tweak);
    state ^= inner ^ tweak ^ kRoundConstants[i] ^ kAlpha;
  }
  return state ^ otherOuter;
}

uint32_t authenticationCode(uint32_t value, uint32_t modifier, const PacKey& key) {
  const uint64_t low = uint64_t{key[1]} << 32 | key[0], high = uint64_t{key[3]} << 32 | key[2];
  return static_cast<uint32_t>(qarma64(value, modifier, high, low) >> 32);
}

}  // namespace carina::cpu_m
