// SPDX-License-Identifier: Apache-2.0
// Predication: VPT blocks and loop tails.
#include "cpu_m/mve.hpp"

namespace carina::cpu_m::mve {
namespace {

constexpr std::array<u64, 256> makeByteMasks() {
  std::array<u64, 256> masks{};
  for (u32 bits = 0; bits < 256; ++bits) {
    for (u32 i = 0; i < 8; ++i) {
      if ((bits >> i & 1) != 0) masks[bits] |= u64{0xff} << (8 * i);
    }
  }
  return masks;
}

constexpr u32 kMask01Shift = 16, kMask23Shift = 20;

}  // namespace

constinit const std::array<u64, 256> kByteMasks = makeByteMasks();

Predicate executedSlowly(const State& s) {
  switch (s.vpr >> 24 & 15) {
    case 0:
      return {};
    case 1:  // A0
      return {0xfff0};
    case 2:  // A0, A1
      return {0xff00};
    default:  // A0, A1, A2, possibly the first beat of the next instruction
      return {0xf000};
  }
}

Predicate predicateSlowly(const State& s) {
  u32 bytes = s.vpr & 0xffff;
  if ((s.vpr >> kMask01Shift & 15) == 0) bytes |= 0x00ff;
  if ((s.vpr >> kMask23Shift & 15) == 0) bytes |= 0xff00;
  // The last iteration of a loop with tail predication: LR elements are left.
  if (s.ltpsize < kNoTailPredication && s.r[14] <= 16u >> s.ltpsize) {
    bytes &= (1u << (s.r[14] << s.ltpsize)) - 1;
  }
  return {static_cast<u16>(bytes & executed(s).bytes)};
}

/// Each half of the vector has a mask: its lowest 1 ends the block, a 1 above that inverts the predicate.
void advanceSlowly(State& s) {
  const u32 done = executed(s).bytes;
  const auto half = [&s, done](u32 shift, u32 p0) {
    const u32 mask = s.vpr >> shift & 15;
    if (mask > 8) s.vpr ^= p0 & done;
    // The mask of a half advances with its second beat.
    if ((done & p0 & 0xf0f0) != 0) s.vpr = (s.vpr & ~(15u << shift)) | (mask << 1 & 15) << shift;
  };
  half(kMask01Shift, 0x00ff);
  half(kMask23Shift, 0xff00);
}

}  // namespace carina::cpu_m::mve
