// SPDX-License-Identifier: Apache-2.0
// Vector instructions with one vector operand or none: bit counts, reversals, magnitudes, immediates,
// duplicates, counters, and moves between vectors and core registers.
#include "cpu_m/mve.hpp"

namespace carina::cpu_m {
namespace mve {
namespace {

template <class T>
struct CountLeadingZeros {
  static T run(T value) { return static_cast<T>(std::countl_zero(value)); }
};
template <class T>
struct CountLeadingSigns {  // counts the bits after the sign that equal it
  static T run(T value) {
    const auto folded =
        static_cast<T>(value ^ (value >> (kWidth<T> - 1) != 0 ? static_cast<T>(~T{0}) : T{0}));
    return static_cast<T>(std::countl_zero(folded) - 1);
  }
};
template <class T>
struct Not {
  static T run(T value) { return ~value; }
};
template <class T>
struct Abs {
  static T run(T value) { return static_cast<T>(value < 0 ? -s64{value} : s64{value}); }
};
template <class T>
struct Neg {
  static T run(T value) { return static_cast<T>(-s64{value}); }
};
template <class T>
struct ExactAbs {
  static s64 run(T value) { return value < 0 ? -s64{value} : s64{value}; }
};
template <class T>
struct ExactNeg {
  static s64 run(T value) { return -s64{value}; }
};

/// Reverses the order of the elements of type T within groups of Bytes bytes.
template <u32 Bytes, class T>
void reverse(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> m = readQ<T>(core.state, op.m);
  Vector<T> r;
  for (u32 i = 0; i < kLanes<T>; ++i) r[i] = m[i ^ (Bytes / sizeof(T) - 1)];
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

/// Compares Qda, unsigned, with the magnitude of Qm.
template <bool Maximum, class T>
void magnitudeExtreme(Core& core, const Op& op) {
  using U = std::make_unsigned_t<T>;
  const Predicate where = begin(core);
  const Vector<T> m = readQ<T>(core.state, op.m);
  const Vector<U> d = readQ<U>(core.state, op.d);
  Vector<U> r;
  for (u32 i = 0; i < kLanes<T>; ++i) {
    const auto magnitude = static_cast<U>(Abs<T>::run(m[i]));
    r[i] = (magnitude > d[i]) == Maximum ? magnitude : d[i];
  }
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

// --- immediates

/// AdvSIMDExpandImm for all but 64-bit immediates: `mode` is cmode, the result one word of the vector.
u32 expandImmediate(u32 mode, u32 byte) {
  switch (mode >> 1) {
    case 0:
    case 1:
    case 2:
    case 3:
      return byte << 8 * (mode >> 1);
    case 4:
      return byte * 0x00010001;
    case 5:
      return byte * 0x01000100;
    case 6:
      return (mode & 1) != 0 ? byte << 16 | 0xffff : byte << 8 | 0xff;
    default:
      if ((mode & 1) == 0) return byte * 0x01010101;
      return (byte >> 7) << 31 | ((byte >> 6 & 1) != 0 ? 0x3e000000u : 0x40000000u) | (byte & 0x3f) << 19;
  }
}

/// The byte from fields x, y, z.
template <bool Inverted, u32 Mode>
Decoded expand(Op& op, DecodeContext&) {
  const u32 byte = static_cast<u32>(op.x) << 7 | static_cast<u32>(op.y) << 4 | op.z;
  op.imm = expandImmediate(Mode, byte);
  if (Inverted) op.imm = ~op.imm;
  return Decoded::Ok;
}
Decoded expandBytes(Op& op, DecodeContext&) {
  op.imm = static_cast<u32>(op.x) << 7 | static_cast<u32>(op.y) << 4 | op.z;
  return Decoded::Ok;
}

void moveImmediate(Core& core, const Op& op) {
  const Predicate where = begin(core);
  writeQ(core.state, op.d, Vector<u32>{{op.imm, op.imm, op.imm, op.imm}}, where);
  advance(core.state);
}
/// Each bit of the immediate is expanded to a byte.
void moveByteMask(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const u64 bytes = kByteMasks[op.imm];
  writeQ(core.state, op.d, Vector<u64>{{bytes, bytes}}, where);
  advance(core.state);
}
void orImmediate(Core& core, const Op& op) {
  const Predicate where = begin(core);
  Vector<u32> d = readQ<u32>(core.state, op.d);
  for (u32& lane : d.lane) lane |= op.imm;
  writeQ(core.state, op.d, d, where);
  advance(core.state);
}
void andImmediate(Core& core, const Op& op) {
  const Predicate where = begin(core);
  Vector<u32> d = readQ<u32>(core.state, op.d);
  for (u32& lane : d.lane) lane &= op.imm;
  writeQ(core.state, op.d, d, where);
  advance(core.state);
}

// --- from and to core registers

template <class T>
void duplicate(Core& core, const Op& op) {
  const Predicate where = begin(core);
  Vector<T> r;
  for (T& lane : r.lane) lane = static_cast<T>(core.state.r[op.n]);
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}
Decoded prepareDuplicate(Op& op, DecodeContext&) {
  return isBad(op.n) ? Decoded::Unpredictable : Decoded::Ok;
}

/// Counts up (`Down`: down) from Rn by Op::imm, wrapping at Rm if `Wraps`. Rn advances to the next vector
/// regardless of predication.
template <bool Down, bool Wraps, class T>
void count(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  u32 counter = s.r[op.n];
  const u32 end = Wraps ? s.r[op.m] : 0;
  Vector<T> r;
  for (T& lane : r.lane) {
    lane = static_cast<T>(counter);
    if (Down) {
      if (Wraps && counter == 0) counter = end;
      counter -= op.imm;
    } else {
      counter += op.imm;
      if (Wraps && counter == end) counter = 0;
    }
  }
  writeQ(s, op.d, r, where);
  s.r[op.n] = counter;
  advance(s);
}
/// Rn is even, Rm odd.
Decoded counter(Op& op, DecodeContext&) {
  op.n = static_cast<u8>(op.n * 2);
  op.m = static_cast<u8>(op.m * 2 + 1);
  op.imm = 1u << op.imm;
  return op.m == 13 ? Decoded::Unpredictable : Decoded::Ok;
}

/// Lanes x and x + 2 from Rm and Ra; not predicated.
void twoToVector(Core& core, const Op& op) {
  core.useFloatingPoint();
  State& s = core.state;
  const Predicate beats = executed(s);
  if (beats.lane<u32>(op.x)) s.setElement<u32>(4 * op.d + op.x, s.r[op.m]);
  if (beats.lane<u32>(op.x + 2u)) s.setElement<u32>(4 * op.d + op.x + 2, s.r[op.a]);
}
void twoFromVector(Core& core, const Op& op) {
  core.useFloatingPoint();
  State& s = core.state;
  const Predicate beats = executed(s);
  if (beats.lane<u32>(op.x)) s.r[op.m] = s.element<u32>(4 * op.d + op.x);
  if (beats.lane<u32>(op.x + 2u)) s.r[op.a] = s.element<u32>(4 * op.d + op.x + 2);
}
template <u8 Lane>
Decoded twoRegisters(Op& op, DecodeContext&) {
  op.x = Lane;
  const auto bad = [](u32 r) { return r == 13 || r == 15; };
  return bad(op.m) || bad(op.a) ? Decoded::Unpredictable : Decoded::Ok;
}
template <u8 Lane>
Decoded twoDifferentRegisters(Op& op, DecodeContext& context) {
  return op.m == op.a ? Decoded::Unpredictable : twoRegisters<Lane>(op, context);
}

#define UNARY(low, tail, name, t, HANDLER, OP, P)                                    \
  {"1111 1111 1011 00" low " ddd0 " tail " mmm0", name "." t "8 " MVE_QQ, kMve,      \
   straight<HANDLER<OP, P##8>>},                                                     \
      {"1111 1111 1011 01" low " ddd0 " tail " mmm0", name "." t "16 " MVE_QQ, kMve, \
       straight<HANDLER<OP, P##16>>},                                                \
  {                                                                                  \
    "1111 1111 1011 10" low " ddd0 " tail " mmm0", name "." t "32 " MVE_QQ, kMve,    \
        straight<HANDLER<OP, P##32>>                                                 \
  }
#define MAGNITUDE(x, name, Maximum)                                              \
  {"1110 1110 0011 0011 ddd" x " 1110 1000 mmm1", name ".s8 " MVE_QQ, kMve,      \
   straight<magnitudeExtreme<Maximum, s8>>},                                     \
      {"1110 1110 0011 0111 ddd" x " 1110 1000 mmm1", name ".s16 " MVE_QQ, kMve, \
       straight<magnitudeExtreme<Maximum, s16>>},                                \
  {                                                                              \
    "1110 1110 0011 1011 ddd" x " 1110 1000 mmm1", name ".s32 " MVE_QQ, kMve,    \
        straight<magnitudeExtreme<Maximum, s32>>                                 \
  }
#define MODIFIED(cmode, op5, name, handler, prepare)                                                   \
  {                                                                                                    \
    "111x 1111 1000 0yyy ddd0 " cmode " 01" op5 "1 zzzz", name " q{d}, {#i}", kMve, straight<handler>, \
        prepare                                                                                        \
  }
#define COUNT(x, name, wrapping, Down)                                                              \
  {"1110 1110 0000 nnn1 ddd" x " 1111 i110 111i", name ".u8 q{d}, {Rn}, {#i}", kMve,                \
   straight<count<Down, false, u8>>, counter},                                                      \
      {"1110 1110 0001 nnn1 ddd" x " 1111 i110 111i", name ".u16 q{d}, {Rn}, {#i}", kMve,           \
       straight<count<Down, false, u16>>, counter},                                                 \
      {"1110 1110 0010 nnn1 ddd" x " 1111 i110 111i", name ".u32 q{d}, {Rn}, {#i}", kMve,           \
       straight<count<Down, false, u32>>, counter},                                                 \
      {"1110 1110 0000 nnn1 ddd" x " 1111 i110 mmmi", wrapping ".u8 q{d}, {Rn}, {Rm}, {#i}", kMve,  \
       straight<count<Down, true, u8>>, counter},                                                   \
      {"1110 1110 0001 nnn1 ddd" x " 1111 i110 mmmi", wrapping ".u16 q{d}, {Rn}, {Rm}, {#i}", kMve, \
       straight<count<Down, true, u16>>, counter},                                                  \
  {                                                                                                 \
    "1110 1110 0010 nnn1 ddd" x " 1111 i110 mmmi", wrapping ".u32 q{d}, {Rn}, {Rm}, {#i}", kMve,    \
        straight<count<Down, true, u32>>, counter                                                   \
  }

const Encoding kMoveRows[] = {
    UNARY("00", "0100 0100", "vcls", "s", unary, CountLeadingSigns, u),
    UNARY("00", "0100 1100", "vclz", "i", unary, CountLeadingZeros, u),
    {"1111 1111 1011 0000 ddd0 0001 0100 mmm0", "vrev16.8 " MVE_QQ, kMve, straight<reverse<2, u8>>},
    {"1111 1111 1011 0000 ddd0 0000 1100 mmm0", "vrev32.8 " MVE_QQ, kMve, straight<reverse<4, u8>>},
    {"1111 1111 1011 0100 ddd0 0000 1100 mmm0", "vrev32.16 " MVE_QQ, kMve, straight<reverse<4, u16>>},
    {"1111 1111 1011 0000 ddd0 0000 0100 mmm0", "vrev64.8 " MVE_QQ, kMve, straight<reverse<8, u8>>},
    {"1111 1111 1011 0100 ddd0 0000 0100 mmm0", "vrev64.16 " MVE_QQ, kMve, straight<reverse<8, u16>>},
    {"1111 1111 1011 1000 ddd0 0000 0100 mmm0", "vrev64.32 " MVE_QQ, kMve, straight<reverse<8, u32>>},
    {"1111 1111 1011 0000 ddd0 0101 1100 mmm0", "vmvn " MVE_QQ, kMve, straight<unary<Not, u64>>},
    UNARY("01", "0011 0100", "vabs", "s", unary, Abs, s),
    UNARY("01", "0011 1100", "vneg", "s", unary, Neg, s),
    UNARY("00", "0111 0100", "vqabs", "s", saturatingUnary, ExactAbs, s),
    UNARY("00", "0111 1100", "vqneg", "s", saturatingUnary, ExactNeg, s),
    MAGNITUDE("0", "vmaxa", true),
    MAGNITUDE("1", "vmina", false),

    MODIFIED("0001", "0", "vorr.i32", orImmediate, (expand<false, 0b0001>)),
    MODIFIED("0011", "0", "vorr.i32", orImmediate, (expand<false, 0b0011>)),
    MODIFIED("0101", "0", "vorr.i32", orImmediate, (expand<false, 0b0101>)),
    MODIFIED("0111", "0", "vorr.i32", orImmediate, (expand<false, 0b0111>)),
    MODIFIED("1001", "0", "vorr.i16", orImmediate, (expand<false, 0b1001>)),
    MODIFIED("1011", "0", "vorr.i16", orImmediate, (expand<false, 0b1011>)),
    MODIFIED("0000", "0", "vmov.i32", moveImmediate, (expand<false, 0b0000>)),
    MODIFIED("0010", "0", "vmov.i32", moveImmediate, (expand<false, 0b0010>)),
    MODIFIED("0100", "0", "vmov.i32", moveImmediate, (expand<false, 0b0100>)),
    MODIFIED("0110", "0", "vmov.i32", moveImmediate, (expand<false, 0b0110>)),
    MODIFIED("1100", "0", "vmov.i32", moveImmediate, (expand<false, 0b1100>)),
    MODIFIED("1101", "0", "vmov.i32", moveImmediate, (expand<false, 0b1101>)),
    MODIFIED("1000", "0", "vmov.i16", moveImmediate, (expand<false, 0b1000>)),
    MODIFIED("1010", "0", "vmov.i16", moveImmediate, (expand<false, 0b1010>)),
    MODIFIED("0001", "1", "vbic.i32", andImmediate, (expand<true, 0b0001>)),
    MODIFIED("0011", "1", "vbic.i32", andImmediate, (expand<true, 0b0011>)),
    MODIFIED("0101", "1", "vbic.i32", andImmediate, (expand<true, 0b0101>)),
    MODIFIED("0111", "1", "vbic.i32", andImmediate, (expand<true, 0b0111>)),
    MODIFIED("1001", "1", "vbic.i16", andImmediate, (expand<true, 0b1001>)),
    MODIFIED("1011", "1", "vbic.i16", andImmediate, (expand<true, 0b1011>)),
    MODIFIED("0000", "1", "vmvn.i32", moveImmediate, (expand<true, 0b0000>)),
    MODIFIED("0010", "1", "vmvn.i32", moveImmediate, (expand<true, 0b0010>)),
    MODIFIED("0100", "1", "vmvn.i32", moveImmediate, (expand<true, 0b0100>)),
    MODIFIED("0110", "1", "vmvn.i32", moveImmediate, (expand<true, 0b0110>)),
    MODIFIED("1100", "1", "vmvn.i32", moveImmediate, (expand<true, 0b1100>)),
    MODIFIED("1101", "1", "vmvn.i32", moveImmediate, (expand<true, 0b1101>)),
    MODIFIED("1000", "1", "vmvn.i16", moveImmediate, (expand<true, 0b1000>)),
    MODIFIED("1010", "1", "vmvn.i16", moveImmediate, (expand<true, 0b1010>)),
    MODIFIED("1110", "0", "vmov.i8", moveImmediate, (expand<false, 0b1110>)),
    MODIFIED("1111", "0", "vmov.f32", moveImmediate, (expand<false, 0b1111>)),
    MODIFIED("1110", "1", "vmov.i64", moveByteMask, expandBytes),

    {"1110 1110 1110 ddd0 nnnn 1011 0001 0000", "vdup.8 q{d}, {Rn}", kMve, straight<duplicate<u8>>,
     prepareDuplicate},
    {"1110 1110 1010 ddd0 nnnn 1011 0011 0000", "vdup.16 q{d}, {Rn}", kMve, straight<duplicate<u16>>,
     prepareDuplicate},
    {"1110 1110 1010 ddd0 nnnn 1011 0001 0000", "vdup.32 q{d}, {Rn}", kMve, straight<duplicate<u32>>,
     prepareDuplicate},
    COUNT("0", "vidup", "viwdup", false),
    COUNT("1", "vddup", "vdwdup", true),
    {"1110 1100 0001 aaaa ddd0 1111 0000 mmmm", "vmov q{d}[2], q{d}[0], {Rm}, {Ra}", kMve,
     straight<twoToVector>, twoRegisters<0>},
    {"1110 1100 0001 aaaa ddd0 1111 0001 mmmm", "vmov q{d}[3], q{d}[1], {Rm}, {Ra}", kMve,
     straight<twoToVector>, twoRegisters<1>},
    {"1110 1100 0000 aaaa ddd0 1111 0000 mmmm", "vmov {Rm}, {Ra}, q{d}[2], q{d}[0]", kMve,
     straight<twoFromVector>, twoDifferentRegisters<0>},
    {"1110 1100 0000 aaaa ddd0 1111 0001 mmmm", "vmov {Rm}, {Ra}, q{d}[3], q{d}[1]", kMve,
     straight<twoFromVector>, twoDifferentRegisters<1>},
};

}  // namespace
}  // namespace mve

std::span<const Encoding> mveMoveEncodings() {
  return mve::kMoveRows;
}

}  // namespace carina::cpu_m
