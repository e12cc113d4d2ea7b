// SPDX-License-Identifier: Apache-2.0
// Common parts of all vector (MVE) instructions: lanes, predication, saturation. All beats of an instruction
// are executed at once.
#pragma once

#include <array>
#include <limits>
#include <type_traits>

#include "cpu_m/core.hpp"

namespace carina::cpu_m::mve {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
__extension__ typedef __int128 s128;

template <class T>
inline constexpr u32 kLanes = 16 / sizeof(T);
template <class T>
inline constexpr int kWidth = 8 * sizeof(T);

/// Integers of twice (half) the width and the same signedness.
template <class T>
using Twice =
    std::conditional_t<std::is_signed_v<T>,
                       std::conditional_t<sizeof(T) == 1, s16, std::conditional_t<sizeof(T) == 2, s32, s64>>,
                       std::conditional_t<sizeof(T) == 1, u16, std::conditional_t<sizeof(T) == 2, u32, u64>>>;
/// Holds sums and differences of products of Ts exactly.
template <class T>
using Exact = std::conditional_t<sizeof(T) == 4, s128, s64>;

template <class T>
struct Vector {
  alignas(16) T lane[kLanes<T>];
  T& operator[](u32 i) { return lane[i]; }
  const T& operator[](u32 i) const { return lane[i]; }
};

template <class T>
Vector<T> readQ(const State& s, u32 q) {
  Vector<T> v;
  std::memcpy(v.lane, s.vector + 16 * q, 16);
  return v;
}

/// The bytes of the vector that an instruction acts on, one bit each.
struct Predicate {
  u16 bytes = 0xffff;

  bool all() const { return bytes == 0xffff; }
  /// An element is governed by its lowest byte.
  template <class T>
  bool lane(u32 i) const {
    return (bytes >> (i * sizeof(T)) & 1) != 0;
  }
  /// Only the even or odd elements, for instructions that write one of each pair, such as narrowing ones.
  template <class T>
  Predicate onlyAlternate(bool odd) const {
    constexpr u32 kEven = sizeof(T) == 1 ? 0x5555 : sizeof(T) == 2 ? 0x3333 : 0x0f0f;
    return {static_cast<u16>(bytes & (odd ? kEven << sizeof(T) : kEven))};
  }
};

constexpr u32 kVptMasks = 0x00ff0000;                   // VPR.MASK23, MASK01
constexpr u32 kVptOrResumed = kVptMasks | kVprResumed;  // set if a vector instruction needs the slow path

Predicate predicateSlowly(const State& s);
void advanceSlowly(State& s);

inline Predicate predicate(const State& s) {
  if ((s.vpr & kVptOrResumed) == 0 && s.ltpsize >= kNoTailPredication) [[likely]]
    return {};
  return predicateSlowly(s);
}

/// Whether an instruction is resumed after its first beats, and the bytes of the beats that it still
/// executes.
inline bool isResumed(const State& s) {
  return (s.vpr & kVprResumed) != 0;
}
Predicate executedSlowly(const State& s);
inline Predicate executed(const State& s) {
  if (!isResumed(s)) [[likely]]
    return {};
  return executedSlowly(s);
}

/// Start of every vector instruction: checks access to the registers and returns the predicate.
inline Predicate begin(Core& core) {
  core.useFloatingPoint();
  return predicate(core.state);
}

/// End of every vector instruction: advances the VPT block.
inline void advance(State& s) {
  if ((s.vpr & kVptOrResumed) != 0) advanceSlowly(s);
}

/// VPST and VPT: `mask` (bits 3-0) for both halves of the vector, or only the upper one if the lower one is
/// already done.
inline void setBlock(State& s, u32 mask) {
  const u32 halves = (executed(s).bytes & 0x00f0) != 0 ? 0x00110000 : 0x00100000;
  s.vpr = (s.vpr & ~(15 * halves)) | mask * halves;
}

/// Ends a comparison: sets VPR.P0, 0 in inactive lanes, then VPT's mask, if there is one.
inline void setPredicate(State& s, u32 bytes, Predicate where, u32 mask) {
  s.vpr = (s.vpr & ~u32{executed(s).bytes}) | (bytes & where.bytes);
  advance(s);
  if (mask != 0) setBlock(s, mask);
}

/// Each of 8 bits expanded to a byte.
extern const std::array<u64, 256> kByteMasks;

/// Writes the bytes that `where` selects.
template <class T>
void writeQ(State& s, u32 q, const Vector<T>& value, Predicate where) {
  u8* target = s.vector + 16 * q;
  if (where.all()) [[likely]] {
    std::memcpy(target, value.lane, 16);
    return;
  }
  u64 old[2], fresh[2];
  std::memcpy(old, target, 16);
  std::memcpy(fresh, value.lane, 16);
  for (u32 i = 0; i < 2; ++i) {
    const u64 mask = kByteMasks[where.bytes >> (8 * i) & 0xff];
    old[i] = (old[i] & ~mask) | (fresh[i] & mask);
  }
  std::memcpy(target, old, 16);
}

constexpr u32 kFpscrQc = 1u << 27;

/// Sets FPSCR.QC if an active lane of `saturated` is nonzero.
template <class T>
void noteSaturation(State& s, const Vector<T>& saturated, Predicate where) {
  u64 words[2];
  std::memcpy(words, saturated.lane, 16);
  if ((words[0] | words[1]) == 0) [[likely]]
    return;
  for (u32 i = 0; i < kLanes<T>; ++i) {
    if (saturated[i] != 0 && where.lane<T>(i)) s.fpscr |= kFpscrQc;
  }
}

template <class T, class Wide>
constexpr T saturate(Wide value) {
  constexpr Wide kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  return static_cast<T>(value < kLow ? kLow : value > kHigh ? kHigh : value);
}

/// The operand of vector-by-scalar instructions.
template <class T>
T scalar(const State& s, const Op& op) {
  return static_cast<T>(s.r[op.m]);
}

// Forms of instructions. OP<T>::run computes one lane.

template <template <class> class OP, class T>
void unary(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> m = readQ<T>(core.state, op.m);
  Vector<T> r;
  for (u32 i = 0; i < kLanes<T>; ++i) r[i] = OP<T>::run(m[i]);
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

template <template <class> class OP, class T>
void binary(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> n = readQ<T>(core.state, op.n), m = readQ<T>(core.state, op.m);
  Vector<T> r;
  for (u32 i = 0; i < kLanes<T>; ++i) r[i] = OP<T>::run(n[i], m[i]);
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

template <template <class> class OP, class T>
void binaryScalar(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> n = readQ<T>(core.state, op.n);
  const T m = scalar<T>(core.state, op);
  Vector<T> r;
  for (u32 i = 0; i < kLanes<T>; ++i) r[i] = OP<T>::run(n[i], m);
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

/// `run` returns the exact result of a lane; results that do not fit saturate and set QC.
template <class T, class Run>
void saturating(Core& core, const Op& op, Predicate where, Run run) {
  Vector<T> r, saturated;
  for (u32 i = 0; i < kLanes<T>; ++i) {
    const auto exact = run(i);
    r[i] = saturate<T>(exact);
    saturated[i] = r[i] != exact;
  }
  noteSaturation(core.state, saturated, where);
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

template <template <class> class OP, class T>
void saturatingUnary(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> m = readQ<T>(core.state, op.m);
  saturating<T>(core, op, where, [&](u32 i) { return OP<T>::run(m[i]); });
}

template <template <class> class OP, class T>
void saturatingBinary(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> n = readQ<T>(core.state, op.n), m = readQ<T>(core.state, op.m);
  saturating<T>(core, op, where, [&](u32 i) { return OP<T>::run(n[i], m[i]); });
}

template <template <class> class OP, class T>
void saturatingScalar(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> n = readQ<T>(core.state, op.n);
  const T m = scalar<T>(core.state, op);
  saturating<T>(core, op, where, [&](u32 i) { return OP<T>::run(n[i], m); });
}

/// For instructions whose operand Rm must be neither the stack pointer nor the program counter.
inline Decoded scalarOperand(Op& op, DecodeContext&) {
  return isBad(op.m) ? Decoded::Unpredictable : Decoded::Ok;
}
/// For comparisons, where the program counter encodes 0.
inline Decoded comparedScalar(Op& op, DecodeContext&) {
  return op.m == kSp ? Decoded::Unpredictable : Decoded::Ok;
}
/// The same as scalarOperand for the result Rda.
inline Decoded scalarResult(Op& op, DecodeContext&) {
  return isBad(op.d) ? Decoded::Unpredictable : Decoded::Ok;
}

// Operands as the disassembly prints them.
#define MVE_QQ "q{d}, q{m}"
#define MVE_QQQ "q{d}, q{n}, q{m}"
#define MVE_QQR "q{d}, q{n}, {Rm}"

// Rows for 8, 16 and 32 bits: `head` is the pattern up to the two size bits, `tail` what follows them; `type`
// the letter in the data type; P the prefix of the lane type.
#define MVE_ROWS_WITH(head, tail, name, type, operands, HANDLER, OP, P, prepare)                     \
  {head "00" tail, name "." type "8 " operands, kMve, straight<HANDLER<OP, P##8>>, prepare},         \
      {head "01" tail, name "." type "16 " operands, kMve, straight<HANDLER<OP, P##16>>, prepare}, { \
    head "10" tail, name "." type "32 " operands, kMve, straight<HANDLER<OP, P##32>>, prepare        \
  }
#define MVE_ROWS(head, tail, name, type, operands, HANDLER, OP, P) \
  MVE_ROWS_WITH(head, tail, name, type, operands, HANDLER, OP, P, nullptr)
// Signed and unsigned, by bit 28.
#define MVE_ROWS_SU(head, tail, name, operands, HANDLER, OP)         \
  MVE_ROWS("1110 " head, tail, name, "s", operands, HANDLER, OP, s), \
      MVE_ROWS("1111 " head, tail, name, "u", operands, HANDLER, OP, u)
// A vector and a core register.
#define MVE_ROWS_R(head, tail, name, type, HANDLER, OP, P) \
  MVE_ROWS_WITH(head, tail, name, type, MVE_QQR, HANDLER, OP, P, scalarOperand)
#define MVE_ROWS_SU_R(head, tail, name, HANDLER, OP)         \
  MVE_ROWS_R("1110 " head, tail, name, "s", HANDLER, OP, s), \
      MVE_ROWS_R("1111 " head, tail, name, "u", HANDLER, OP, u)

}  // namespace carina::cpu_m::mve
