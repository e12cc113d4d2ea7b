// SPDX-License-Identifier: Apache-2.0
// Vector predication: comparisons of integers, VPT blocks, VCTP, VPNOT, VPSEL.
#include "cpu_m/mve.hpp"

namespace carina::cpu_m {
namespace mve {
namespace {

template <class T>
struct Equal {
  static bool run(T a, T b) { return a == b; }
};
template <class T>
struct NotEqual {
  static bool run(T a, T b) { return a != b; }
};
template <class T>
struct GreaterOrEqual {
  static bool run(T a, T b) { return a >= b; }
};
template <class T>
struct Less {
  static bool run(T a, T b) { return a < b; }
};
template <class T>
struct Greater {
  static bool run(T a, T b) { return a > b; }
};
template <class T>
struct LessOrEqual {
  static bool run(T a, T b) { return a <= b; }
};

/// VCMP, and VPT with a mask in Op::x. Rm = 15 compares with 0.
template <template <class> class OP, class T, bool Scalar>
void compare(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> n = readQ<T>(s, op.n);
  const Vector<T> m = Scalar ? Vector<T>{} : readQ<T>(s, op.m);
  const T scalarM = Scalar && op.m != 15 ? scalar<T>(s, op) : T{0};
  u32 bytes = 0;
  for (u32 i = 0; i < kLanes<T>; ++i) {
    if (OP<T>::run(n[i], Scalar ? scalarM : m[i])) bytes |= ((1u << sizeof(T)) - 1) << (i * sizeof(T));
  }
  setPredicate(s, bytes, where, op.x);
}

void beginBlock(Core& core, const Op& op) {
  core.useFloatingPoint();
  setBlock(core.state, op.x);
}

void invertPredicate(Core& core, const Op&) {
  const Predicate where = begin(core);
  setPredicate(core.state, ~core.state.vpr, where, 0);
}

/// Activates the first Rn elements of 1 << Op::z bytes.
void createTail(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const u32 elements = core.state.r[op.n];
  const u32 bytes = elements >= 16u >> op.z ? 16 : elements << op.z;
  setPredicate(core.state, (1u << bytes) - 1, where, 0);
}
Decoded prepareCreateTail(Op& op, DecodeContext&) {
  op.x = static_cast<u8>(8u << op.z);
  return isBad(op.n) ? Decoded::Unpredictable : Decoded::Ok;
}

void select(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  Vector<u64> r = readQ<u64>(s, op.m);
  const Vector<u64> n = readQ<u64>(s, op.n);
  for (u32 i = 0; i < 2; ++i) {
    const u64 mask = kByteMasks[s.vpr >> (8 * i) & 0xff];
    r[i] = (r[i] & ~mask) | (n[i] & mask);
  }
  writeQ(s, op.d, r, where);
  advance(s);
}

// Rows of one condition: selected by bits 12, 7 and 0; the scalar forms have bit 5 instead of bit 0.
#define COMPARE_SIZE(size, b12, b7, b0, type, text, OP, T)                                                   \
  {"1111 1110 00" size " nnn1 000" b12 " 1111 " b7 "000 mmm" b0, "vcmp." type " " text ", q{n}, q{m}", kMve, \
   straight<compare<OP, T, false>>},                                                                         \
      {"1111 1110 0x" size " nnn1 xxx" b12 " 1111 " b7 "000 mmm" b0,                                         \
       "vp{vpt}." type " " text ", q{n}, q{m}", kMve, straight<compare<OP, T, false>>},                      \
      {"1111 1110 00" size " nnn1 000" b12 " 1111 " b7 "1" b0 "0 mmmm",                                      \
       "vcmp." type " " text ", q{n}, {Rm}", kMve, straight<compare<OP, T, true>>, comparedScalar},          \
  {                                                                                                          \
    "1111 1110 0x" size " nnn1 xxx" b12 " 1111 " b7 "1" b0 "0 mmmm",                                         \
        "vp{vpt}." type " " text ", q{n}, {Rm}", kMve, straight<compare<OP, T, true>>, comparedScalar        \
  }
#define COMPARE(b12, b7, b0, type, text, OP, P)                    \
  COMPARE_SIZE("00", b12, b7, b0, type "8", text, OP, P##8),       \
      COMPARE_SIZE("01", b12, b7, b0, type "16", text, OP, P##16), \
      COMPARE_SIZE("10", b12, b7, b0, type "32", text, OP, P##32)

const Encoding kPredicateRows[] = {
    {"1111 1110 0011 0001 0000 1111 0100 1101", "vpnot", kMve, straight<invertPredicate>},
    {"1111 1110 0x11 0001 xxx0 1111 0100 1101", "vps{vpt}", kMve, straight<beginBlock>},
    {"1111 1110 0011 nnn1 ddd0 1111 0000 mmm1", "vpsel q{d}, q{n}, q{m}", kMve, straight<select>},
    {"1111 0000 00zz nnnn 1110 1000 0000 0001", "vctp.{x} {Rn}", kMve, straight<createTail>,
     prepareCreateTail},
    COMPARE("0", "0", "0", "i", "eq", Equal, u),
    COMPARE("0", "1", "0", "i", "ne", NotEqual, u),
    COMPARE("0", "0", "1", "u", "cs", GreaterOrEqual, u),
    COMPARE("0", "1", "1", "u", "hi", Greater, u),
    COMPARE("1", "0", "0", "s", "ge", GreaterOrEqual, s),
    COMPARE("1", "1", "0", "s", "lt", Less, s),
    COMPARE("1", "0", "1", "s", "gt", Greater, s),
    COMPARE("1", "1", "1", "s", "le", LessOrEqual, s),
};

}  // namespace
}  // namespace mve

std::span<const Encoding> mvePredicateEncodings() {
  return mve::kPredicateRows;
}

}  // namespace carina::cpu_m
