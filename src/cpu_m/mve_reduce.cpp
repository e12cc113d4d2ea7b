// SPDX-License-Identifier: Apache-2.0
// Vector reductions of integers into core registers.
#include "cpu_m/mve.hpp"

namespace carina::cpu_m {
namespace mve {
namespace {

/// Whether a sum starts from the value of its registers: also if its first beats are already done.
bool accumulates(const State& s, const Op& op) {
  return op.a != 0 || isResumed(s);
}

/// Sets inactive elements to 0.
template <class T>
void clearInactive(Vector<T>& v, Predicate where) {
  if (where.all()) return;
  for (u32 i = 0; i < kLanes<T>; ++i) {
    if (!where.lane<T>(i)) v[i] = 0;
  }
}

/// The first operand of a dual multiplication: pairs exchanged if Op::x, then inactive lanes (those of the
/// second operand) set to 0.
template <class T>
Vector<T> dualOperand(const State& s, const Op& op, Predicate where) {
  Vector<T> n = readQ<T>(s, op.n);
  if (op.x != 0) {
    for (u32 i = 0; i < kLanes<T>; i += 2) std::swap(n[i], n[i + 1]);
  }
  clearInactive(n, where);
  return n;
}

/// Rd (accumulating with Op::a) + products, those of odd elements subtracted if `Subtract`; modulo 2^32.
template <bool Subtract, class T>
void multiplyAddAcross(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> n = dualOperand<T>(s, op, where), m = readQ<T>(s, op.m);
  u32 sum = 0;
  if constexpr (Subtract) {
    for (u32 i = 0; i < kLanes<T>; i += 2) {
      sum += static_cast<u32>(n[i]) * static_cast<u32>(m[i]) -
             static_cast<u32>(n[i + 1]) * static_cast<u32>(m[i + 1]);
    }
  } else {
    for (u32 i = 0; i < kLanes<T>; ++i) sum += static_cast<u32>(n[i]) * static_cast<u32>(m[i]);
  }
  s.r[op.d] = (accumulates(s, op) ? s.r[op.d] : 0) + sum;
  advance(s);
}

/// The same into Rz:Rd, 64 bits. `High`: each product is rounded to its bits above the lowest 8.
template <bool Subtract, bool High, class T>
void multiplyAddLong(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> n = dualOperand<T>(s, op, where), m = readQ<T>(s, op.m);
  u64 sum = accumulates(s, op) ? s.pair(op.d, op.z) : 0;
  using Product = std::conditional_t<std::is_signed_v<T>, s64, u64>;
  for (u32 i = 0; i < kLanes<T>; ++i) {
    Product product = Product{n[i]} * m[i];
    if (Subtract && (i & 1) != 0) product = -product;
    if (High) product = (product >> 8) + (product >> 7 & 1);
    sum += static_cast<u64>(product);
  }
  s.setPair(op.d, op.z, sum);
  advance(s);
}

template <class T>
void addAcross(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  Vector<T> m = readQ<T>(s, op.m);
  clearInactive(m, where);
  u32 sum = accumulates(s, op) ? s.r[op.d] : 0;
  for (const T lane : m.lane) sum += static_cast<u32>(lane);
  s.r[op.d] = sum;
  advance(s);
}

template <class T>
void addAcrossLong(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  Vector<T> m = readQ<T>(s, op.m);
  clearInactive(m, where);
  u64 sum = accumulates(s, op) ? s.pair(op.d, op.z) : 0;
  for (const T lane : m.lane) sum += static_cast<u64>(s64{lane});
  s.setPair(op.d, op.z, sum);
  advance(s);
}

template <class T>
void absoluteDifferenceAcross(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> n = readQ<T>(s, op.n), m = readQ<T>(s, op.m);
  u32 sum = s.r[op.d];
  for (u32 i = 0; i < kLanes<T>; ++i) {
    if (where.lane<T>(i)) sum += static_cast<u32>(n[i] > m[i] ? s64{n[i]} - m[i] : s64{m[i]} - n[i]);
  }
  s.r[op.d] = sum;
  advance(s);
}

/// Extreme of Rd, as an element, and all active elements.
template <bool Maximum, class T>
void extremeAcross(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> m = readQ<T>(s, op.m);
  T best = static_cast<T>(s.r[op.d]);
  for (u32 i = 0; i < kLanes<T>; ++i) {
    if (where.lane<T>(i) && (Maximum ? m[i] > best : m[i] < best)) best = m[i];
  }
  s.r[op.d] = static_cast<u32>(best);
  advance(s);
}

/// Extreme of Rd, unsigned, and the elements' magnitudes.
template <bool Maximum, class T>
void extremeMagnitudeAcross(Core& core, const Op& op) {
  using U = std::make_unsigned_t<T>;
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> m = readQ<T>(s, op.m);
  U best = static_cast<U>(s.r[op.d]);
  for (u32 i = 0; i < kLanes<T>; ++i) {
    const auto magnitude = static_cast<U>(m[i] < 0 ? -s64{m[i]} : s64{m[i]});
    if (where.lane<T>(i) && (Maximum ? magnitude > best : magnitude < best)) best = magnitude;
  }
  s.r[op.d] = best;
  advance(s);
}

// --- rows

/// RdaLo is even.
Decoded even(Op& op, DecodeContext&) {
  op.d = static_cast<u8>(op.d * 2);
  return Decoded::Ok;
}
/// RdaLo is even, RdaHi odd.
Decoded evenAndOdd(Op& op, DecodeContext&) {
  op.d = static_cast<u8>(op.d * 2);
  op.z = static_cast<u8>(op.z * 2 + 1);
  return op.z == 13 || op.z == 15 ? Decoded::Unpredictable : Decoded::Ok;
}

// Bit 5 accumulates, bit 12 exchanges; each has its own row, as its name differs.
#define ACROSS(top, size, b8, low, exchanges, accumulates, name, type, Subtract, T)             \
  {                                                                                             \
    top " 1110 1111 nnn" size " ddd" exchanges " 111" b8 " 00" accumulates "0 mmm" low,         \
        name "." type " {Rd}, q{n}, q{m}", kMve, straight<multiplyAddAcross<Subtract, T>>, even \
  }
#define PLAIN_ACROSS(top, size, b8, low, name, type, Subtract, T) \
  ACROSS(top, size, b8, low, "0", "0", name, type, Subtract, T),  \
      ACROSS(top, size, b8, low, "0", "a", name "a", type, Subtract, T)
#define DUAL_ACROSS(top, size, b8, low, name, type, Subtract, T)         \
  PLAIN_ACROSS(top, size, b8, low, name, type, Subtract, T),             \
      ACROSS(top, size, b8, low, "x", "0", name "x", type, Subtract, T), \
      ACROSS(top, size, b8, low, "x", "a", name "ax", type, Subtract, T)
#define LONG(top, size, b8, low, exchanges, accumulates, name, type, Subtract, High, T)              \
  {                                                                                                  \
    top " 1110 1zzz nnn" size " ddd" exchanges " 111" b8 " 00" accumulates "0 mmm" low,              \
        name "." type " {Rd}, {Rz}, q{n}, q{m}", kMve, straight<multiplyAddLong<Subtract, High, T>>, \
        evenAndOdd                                                                                   \
  }
#define LONG_PLAIN(top, size, b8, low, name, type, Subtract, High, T) \
  LONG(top, size, b8, low, "0", "0", name, type, Subtract, High, T),  \
      LONG(top, size, b8, low, "0", "a", name "a", type, Subtract, High, T)
#define LONG_DUAL(top, size, b8, low, name, type, Subtract, High, T)         \
  LONG_PLAIN(top, size, b8, low, name, type, Subtract, High, T),             \
      LONG(top, size, b8, low, "x", "0", name "x", type, Subtract, High, T), \
      LONG(top, size, b8, low, "x", "a", name "ax", type, Subtract, High, T)
#define EXTREME(top, size, which, b7, name, type, HANDLER, Maximum, T)                           \
  {                                                                                              \
    top " 1110 1110 " size which " dddd 1111 " b7 "000 mmm0", name "." type " {Rd}, q{m}", kMve, \
        straight<HANDLER<Maximum, T>>, scalarResult                                              \
  }
#define EXTREMES(top, which, b7, name, t, HANDLER, Maximum, P)              \
  EXTREME(top, "00", which, b7, name, t "8", HANDLER, Maximum, P##8),       \
      EXTREME(top, "01", which, b7, name, t "16", HANDLER, Maximum, P##16), \
      EXTREME(top, "10", which, b7, name, t "32", HANDLER, Maximum, P##32)
#define ADD_ACROSS(top, size, type, T)                                                   \
  {top " 1110 1111 " size "01 ddd0 1111 0000 mmm0", "vaddv." type " {Rd}, q{m}", kMve,   \
   straight<addAcross<T>>, even},                                                        \
  {                                                                                      \
    top " 1110 1111 " size "01 ddd0 1111 00a0 mmm0", "vaddva." type " {Rd}, q{m}", kMve, \
        straight<addAcross<T>>, even                                                     \
  }
#define ADD_LONG(top, type, T)                                                            \
  {top " 1110 1zzz 1001 ddd0 1111 0000 mmm0", "vaddlv." type " {Rd}, {Rz}, q{m}", kMve,   \
   straight<addAcrossLong<T>>, evenAndOdd},                                               \
  {                                                                                       \
    top " 1110 1zzz 1001 ddd0 1111 00a0 mmm0", "vaddlva." type " {Rd}, {Rz}, q{m}", kMve, \
        straight<addAcrossLong<T>>, evenAndOdd                                            \
  }
#define DIFFERENCE(top, size, type, T)                                                        \
  {                                                                                           \
    top " 1110 10" size " nnn0 dddd 1111 0000 mmm1", "vabav." type " {Rd}, q{n}, q{m}", kMve, \
        straight<absoluteDifferenceAcross<T>>, scalarResult                                   \
  }

const Encoding kReduceRows[] = {
    EXTREMES("1110", "10", "0", "vmaxv", "s", extremeAcross, true, s),
    EXTREMES("1111", "10", "0", "vmaxv", "u", extremeAcross, true, u),
    EXTREMES("1110", "10", "1", "vminv", "s", extremeAcross, false, s),
    EXTREMES("1111", "10", "1", "vminv", "u", extremeAcross, false, u),
    EXTREMES("1110", "00", "0", "vmaxav", "s", extremeMagnitudeAcross, true, s),
    EXTREMES("1110", "00", "1", "vminav", "s", extremeMagnitudeAcross, false, s),

    ADD_ACROSS("1110", "00", "s8", s8),
    ADD_ACROSS("1110", "01", "s16", s16),
    ADD_ACROSS("1110", "10", "s32", s32),
    ADD_ACROSS("1111", "00", "u8", u8),
    ADD_ACROSS("1111", "01", "u16", u16),
    ADD_ACROSS("1111", "10", "u32", u32),
    ADD_LONG("1110", "s32", s32),
    ADD_LONG("1111", "u32", u32),
    DIFFERENCE("1110", "00", "s8", s8),
    DIFFERENCE("1110", "01", "s16", s16),
    DIFFERENCE("1110", "10", "s32", s32),
    DIFFERENCE("1111", "00", "u8", u8),
    DIFFERENCE("1111", "01", "u16", u16),
    DIFFERENCE("1111", "10", "u32", u32),

    // RdaHi = 111: 32-bit results.
    DUAL_ACROSS("1110", "0", "1", "0", "vmladav", "s8", false, s8),
    DUAL_ACROSS("1110", "0", "0", "0", "vmladav", "s16", false, s16),
    DUAL_ACROSS("1110", "1", "0", "0", "vmladav", "s32", false, s32),
    PLAIN_ACROSS("1111", "0", "1", "0", "vmladav", "u8", false, u8),
    PLAIN_ACROSS("1111", "0", "0", "0", "vmladav", "u16", false, u16),
    PLAIN_ACROSS("1111", "1", "0", "0", "vmladav", "u32", false, u32),
    DUAL_ACROSS("1111", "0", "0", "1", "vmlsdav", "s8", true, s8),
    DUAL_ACROSS("1110", "0", "0", "1", "vmlsdav", "s16", true, s16),
    DUAL_ACROSS("1110", "1", "0", "1", "vmlsdav", "s32", true, s32),

    LONG_DUAL("1110", "0", "1", "0", "vrmlaldavh", "s32", false, true, s32),
    LONG_PLAIN("1111", "0", "1", "0", "vrmlaldavh", "u32", false, true, u32),
    LONG_DUAL("1111", "0", "0", "1", "vrmlsldavh", "s32", true, true, s32),
    LONG_DUAL("1110", "0", "0", "0", "vmlaldav", "s16", false, false, s16),
    LONG_DUAL("1110", "1", "0", "0", "vmlaldav", "s32", false, false, s32),
    LONG_PLAIN("1111", "0", "0", "0", "vmlaldav", "u16", false, false, u16),
    LONG_PLAIN("1111", "1", "0", "0", "vmlaldav", "u32", false, false, u32),
    LONG_DUAL("1110", "0", "0", "1", "vmlsldav", "s16", true, false, s16),
    LONG_DUAL("1110", "1", "0", "1", "vmlsldav", "s32", true, false, s32),
};

}  // namespace
}  // namespace mve

std::span<const Encoding> mveReduceEncodings() {
  return mve::kReduceRows;
}

}  // namespace carina::cpu_m
