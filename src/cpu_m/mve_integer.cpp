// SPDX-License-Identifier: Apache-2.0
// Vector integer instructions with two operands of the same shape: arithmetic, logic, multiplications,
// complex additions and additions with carry.
#include "cpu_m/mve.hpp"

namespace carina::cpu_m {
namespace mve {
namespace {

// --- lanes

template <class T>
struct Add {
  static T run(T a, T b) { return static_cast<T>(a + b); }
};
template <class T>
struct Sub {
  static T run(T a, T b) { return static_cast<T>(a - b); }
};
template <class T>
struct Mul {  // in unsigned 32 bits: products of uint16_t would be int
  static T run(T a, T b) { return static_cast<T>(u32{a} * u32{b}); }
};
template <class T>
struct HalvingAdd {
  static T run(T a, T b) { return static_cast<T>((Twice<T>{a} + b) >> 1); }
};
template <class T>
struct RoundingHalvingAdd {
  static T run(T a, T b) { return static_cast<T>((Twice<T>{a} + b + 1) >> 1); }
};
template <class T>
struct HalvingSub {
  static T run(T a, T b) { return static_cast<T>((s64{a} - b) >> 1); }
};
template <class T>
struct Max {
  static T run(T a, T b) { return a > b ? a : b; }
};
template <class T>
struct Min {
  static T run(T a, T b) { return a < b ? a : b; }
};
template <class T>
struct AbsoluteDifference {
  static T run(T a, T b) { return static_cast<T>(a > b ? s64{a} - b : s64{b} - a); }
};
template <class T>
struct MulHigh {
  static T run(T a, T b) { return static_cast<T>(Twice<T>{a} * b >> kWidth<T>); }
};
template <class T>
struct RoundingMulHigh {
  static T run(T a, T b) {
    return static_cast<T>((Twice<T>{a} * b + (Twice<T>{1} << (kWidth<T> - 1))) >> kWidth<T>);
  }
};

// Exact results, to be saturated.
template <class T>
using Signed = std::make_signed_t<Twice<T>>;
template <class T>
struct ExactAdd {
  static Signed<T> run(T a, T b) { return static_cast<Signed<T>>(Signed<T>{a} + b); }
};
template <class T>
struct ExactSub {
  static Signed<T> run(T a, T b) { return static_cast<Signed<T>>(Signed<T>{a} - b); }
};
template <class T>
struct DoublingMulHigh {
  static Twice<T> run(T a, T b) { return static_cast<Twice<T>>(Twice<T>{a} * b >> (kWidth<T> - 1)); }
};
template <class T>
struct RoundingDoublingMulHigh {
  static Twice<T> run(T a, T b) {
    return static_cast<Twice<T>>((Twice<T>{a} * b + (Twice<T>{1} << (kWidth<T> - 2))) >> (kWidth<T> - 1));
  }
};

template <class T>
struct And {
  static T run(T a, T b) { return a & b; }
};
template <class T>
struct Bic {
  static T run(T a, T b) { return a & ~b; }
};
template <class T>
struct Orr {
  static T run(T a, T b) { return a | b; }
};
template <class T>
struct Orn {
  static T run(T a, T b) { return a | ~b; }
};
template <class T>
struct Eor {
  static T run(T a, T b) { return a ^ b; }
};

/// Bit-reverses the lowest `count` bits, clears the others.
template <class T>
struct ReverseBits {
  static T run(T value, T counts) {
    const u32 count = counts & 0xff;
    u32 reversed = 0;
    for (u32 i = 0; i < count && i < kWidth<T>; ++i) reversed = reversed << 1 | (value >> i & 1);
    return static_cast<T>(reversed);
  }
};

// --- long multiplications

/// Products of the even or odd elements; R is twice as wide as T.
template <bool Top, class T>
void multiplyLong(Core& core, const Op& op) {
  using R = Twice<T>;
  const Predicate where = begin(core);
  const Vector<T> n = readQ<T>(core.state, op.n), m = readQ<T>(core.state, op.m);
  Vector<R> r;
  for (u32 i = 0; i < kLanes<R>; ++i) {
    const T a = n[2 * i + Top], b = m[2 * i + Top];
    if constexpr (std::is_signed_v<T>) {
      r[i] = R{a} * b;
    } else {
      r[i] = static_cast<R>(u64{a} * b);
    }
  }
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

/// Carry-less products.
template <bool Top, class T>
void multiplyPolynomial(Core& core, const Op& op) {
  using R = Twice<T>;
  const Predicate where = begin(core);
  const Vector<T> n = readQ<T>(core.state, op.n), m = readQ<T>(core.state, op.m);
  Vector<R> r;
  for (u32 i = 0; i < kLanes<R>; ++i) {
    R product = 0;
    for (int bit = 0; bit < kWidth<T>; ++bit) {
      if ((m[2 * i + Top] >> bit & 1) != 0) product = static_cast<R>(product ^ (R{n[2 * i + Top]} << bit));
    }
    r[i] = product;
  }
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

/// Doubled, saturated products of the even or odd elements.
template <bool Top, class T, bool Scalar>
void doublingMultiplyLong(Core& core, const Op& op) {
  using R = Twice<T>;
  const Predicate where = begin(core);
  const Vector<T> n = readQ<T>(core.state, op.n);
  const Vector<T> m = Scalar ? Vector<T>{} : readQ<T>(core.state, op.m);
  Vector<R> r;
  Vector<T> saturated{};
  for (u32 i = 0; i < kLanes<R>; ++i) {
    const T a = n[2 * i + Top];
    const T b = Scalar ? scalar<T>(core.state, op) : m[2 * i + Top];
    const R product = R{a} * b;
    constexpr R kHalf = R{1} << (2 * kWidth<T> - 2);  // MIN * MIN only
    // QC is predicated by the source element; 64-bit results take two beats, either of which counts.
    saturated[2 * i + Top] = product == kHalf;
    if (sizeof(T) == 4) saturated[2 * i + !Top] = product == kHalf;
    r[i] = product == kHalf ? std::numeric_limits<R>::max() : static_cast<R>(product * 2);
  }
  noteSaturation(core.state, saturated, where);
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

// --- saturating multiply-accumulate, high halves

/// Qd = high half of 2 * Qn * Rm + (Qd << width), or with Qd and Rm exchanged (`IntoScalar`).
template <bool IntoScalar, bool Rounds, class T>
void doublingMultiplyAccumulate(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> n = readQ<T>(core.state, op.n), d = readQ<T>(core.state, op.d);
  const T m = scalar<T>(core.state, op);
  saturating<T>(core, op, where, [&](u32 i) {
    const s64 factor = IntoScalar ? d[i] : m, addend = IntoScalar ? m : d[i];
    // Everything is halved to fit 64 bits.
    s64 sum = factor * n[i] + addend * (s64{1} << (kWidth<T> - 1));
    if (Rounds) sum += s64{1} << (kWidth<T> - 2);
    return sum >> (kWidth<T> - 1);
  });
}

/// Pairs: the even result lanes (odd ones if exchanged) receive the high half of 2 * (n0 * m0 +- n1 * m1).
template <bool Subtract, bool Exchange, bool Rounds, class T>
void doublingMultiplyDual(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> n = readQ<T>(core.state, op.n), m = readQ<T>(core.state, op.m);
  Vector<T> r{}, saturated{};
  for (u32 i = 0; i < kLanes<T>; i += 2) {
    using E = Exact<T>;
    const E first = Exchange ? E{n[i + 1]} * m[i] : E{n[i]} * m[i];
    const E second = Exchange ? E{n[i]} * m[i + 1] : E{n[i + 1]} * m[i + 1];
    E sum = Subtract ? first - second : first + second;
    if (Rounds) sum += E{1} << (kWidth<T> - 2);
    sum >>= kWidth<T> - 1;
    const u32 to = i + Exchange;
    r[to] = saturate<T>(sum);
    saturated[to] = r[to] != sum;
  }
  noteSaturation(core.state, saturated, where);
  writeQ(core.state, op.d, r, where.onlyAlternate<T>(Exchange));
  advance(core.state);
}

// --- multiply-accumulate by scalar

template <class T>
struct MultiplyAdd {  // Qd + Qn * Rm
  static T run(T d, T n, T m) { return static_cast<T>(u32{d} + u32{n} * u32{m}); }
};
template <class T>
struct MultiplyAddScalar {  // Qd * Qn + Rm
  static T run(T d, T n, T m) { return static_cast<T>(u32{d} * u32{n} + u32{m}); }
};

template <template <class> class OP, class T>
void accumulateScalar(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> d = readQ<T>(core.state, op.d), n = readQ<T>(core.state, op.n);
  const T m = scalar<T>(core.state, op);
  Vector<T> r;
  for (u32 i = 0; i < kLanes<T>; ++i) r[i] = OP<T>::run(d[i], n[i], m);
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

// --- complex additions, additions with carry

/// Rotated by 90 degrees: even n - m[odd], odd n + m[even]; by 270: vice versa.
template <bool By270, bool Halves, class T>
void complexAdd(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> n = readQ<T>(core.state, op.n), m = readQ<T>(core.state, op.m);
  Vector<T> r;
  for (u32 i = 0; i < kLanes<T>; i += 2) {
    const s64 re = By270 ? s64{n[i]} + m[i + 1] : s64{n[i]} - m[i + 1];
    const s64 im = By270 ? s64{n[i + 1]} - m[i] : s64{n[i + 1]} + m[i];
    r[i] = static_cast<T>(Halves ? re >> 1 : re);
    r[i + 1] = static_cast<T>(Halves ? im >> 1 : im);
  }
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

constexpr u32 kFpscrC = 1u << 29;

/// One addition of up to 128 bits; the carry is FPSCR.C. `Initial`: starts without carry (borrow).
template <bool Subtract, bool Initial>
void addWithCarry(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<u32> n = readQ<u32>(s, op.n), m = readQ<u32>(s, op.m);
  Vector<u32> r;
  const bool initial = Initial && !isResumed(core.state);
  u64 carry = initial ? Subtract : (s.fpscr & kFpscrC) != 0;
  bool any = false;
  for (u32 i = 0; i < 4; ++i) {
    const u64 sum = u64{n[i]} + (Subtract ? ~m[i] : m[i]) + carry;
    r[i] = static_cast<u32>(sum);
    if (!where.lane<u32>(i)) continue;
    carry = sum >> 32;
    any = true;
  }
  if (initial || any) s.fpscr = (s.fpscr & ~kFpscrNzcv) | (carry != 0 ? kFpscrC : 0);
  writeQ(s, op.d, r, where);
  advance(s);
}

#define DUAL(top, x, low, name, Sub, Exchange, Rounds)                               \
  {top " 1110 0000 nnn0 ddd" x " 1110 0000 mmm" low, name ".s8 " MVE_QQQ, kMve,      \
   straight<doublingMultiplyDual<Sub, Exchange, Rounds, s8>>},                       \
      {top " 1110 0001 nnn0 ddd" x " 1110 0000 mmm" low, name ".s16 " MVE_QQQ, kMve, \
       straight<doublingMultiplyDual<Sub, Exchange, Rounds, s16>>},                  \
  {                                                                                  \
    top " 1110 0010 nnn0 ddd" x " 1110 0000 mmm" low, name ".s32 " MVE_QQQ, kMve,    \
        straight<doublingMultiplyDual<Sub, Exchange, Rounds, s32>>                   \
  }
#define LONG_BHW(top, tail, name, type, HANDLER, Top, P)                                           \
  {top " 1110 0000" tail, name "." type "8 " MVE_QQQ, kMve, straight<HANDLER<Top, P##8>>},         \
      {top " 1110 0001" tail, name "." type "16 " MVE_QQQ, kMve, straight<HANDLER<Top, P##16>>}, { \
    top " 1110 0010" tail, name "." type "32 " MVE_QQQ, kMve, straight<HANDLER<Top, P##32>>        \
  }
#define COMPLEX(top, x, name, type, angle, By270, Halves, P)                                   \
  {top " 1110 0000 nnn0 ddd" x " 1111 0000 mmm0", name "." type "8 " MVE_QQQ angle, kMve,      \
   straight<complexAdd<By270, Halves, P##8>>},                                                 \
      {top " 1110 0001 nnn0 ddd" x " 1111 0000 mmm0", name "." type "16 " MVE_QQQ angle, kMve, \
       straight<complexAdd<By270, Halves, P##16>>},                                            \
  {                                                                                            \
    top " 1110 0010 nnn0 ddd" x " 1111 0000 mmm0", name "." type "32 " MVE_QQQ angle, kMve,    \
        straight<complexAdd<By270, Halves, P##32>>                                             \
  }
#define ACCUMULATE(x, low, name, IntoScalar, Rounds)                                  \
  {"1110 1110 0000 nnn0 ddd" x " 1110 " low " mmmm", name ".s8 " MVE_QQR, kMve,       \
   straight<doublingMultiplyAccumulate<IntoScalar, Rounds, s8>>, scalarOperand},      \
      {"1110 1110 0001 nnn0 ddd" x " 1110 " low " mmmm", name ".s16 " MVE_QQR, kMve,  \
       straight<doublingMultiplyAccumulate<IntoScalar, Rounds, s16>>, scalarOperand}, \
  {                                                                                   \
    "1110 1110 0010 nnn0 ddd" x " 1110 " low " mmmm", name ".s32 " MVE_QQR, kMve,     \
        straight<doublingMultiplyAccumulate<IntoScalar, Rounds, s32>>, scalarOperand  \
  }

const Encoding kIntegerRows[] = {
    // Three registers.
    MVE_ROWS("1110 1111 00", " nnn0 ddd0 1000 0100 mmm0", "vadd", "i", MVE_QQQ, binary, Add, u),
    MVE_ROWS("1111 1111 00", " nnn0 ddd0 1000 0100 mmm0", "vsub", "i", MVE_QQQ, binary, Sub, u),
    MVE_ROWS_SU("1111 00", " nnn0 ddd0 0000 0100 mmm0", "vhadd", MVE_QQQ, binary, HalvingAdd),
    MVE_ROWS_SU("1111 00", " nnn0 ddd0 0001 0100 mmm0", "vrhadd", MVE_QQQ, binary, RoundingHalvingAdd),
    MVE_ROWS_SU("1111 00", " nnn0 ddd0 0000 0101 mmm0", "vqadd", MVE_QQQ, saturatingBinary, ExactAdd),
    MVE_ROWS_SU("1111 00", " nnn0 ddd0 0010 0100 mmm0", "vhsub", MVE_QQQ, binary, HalvingSub),
    MVE_ROWS_SU("1111 00", " nnn0 ddd0 0010 0101 mmm0", "vqsub", MVE_QQQ, saturatingBinary, ExactSub),
    MVE_ROWS_SU("1111 00", " nnn0 ddd0 0110 0100 mmm0", "vmax", MVE_QQQ, binary, Max),
    MVE_ROWS_SU("1111 00", " nnn0 ddd0 0110 0101 mmm0", "vmin", MVE_QQQ, binary, Min),
    MVE_ROWS_SU("1111 00", " nnn0 ddd0 0111 0100 mmm0", "vabd", MVE_QQQ, binary, AbsoluteDifference),
    MVE_ROWS("1110 1111 00", " nnn0 ddd0 1001 0101 mmm0", "vmul", "i", MVE_QQQ, binary, Mul, u),
    MVE_ROWS("1110 1111 00", " nnn0 ddd0 1011 0100 mmm0", "vqdmulh", "s", MVE_QQQ, saturatingBinary,
             DoublingMulHigh, s),
    MVE_ROWS("1111 1111 00", " nnn0 ddd0 1011 0100 mmm0", "vqrdmulh", "s", MVE_QQQ, saturatingBinary,
             RoundingDoublingMulHigh, s),
    MVE_ROWS_SU("1110 00", " nnn1 ddd0 1110 0000 mmm1", "vmulh", MVE_QQQ, binary, MulHigh),
    MVE_ROWS_SU("1110 00", " nnn1 ddd1 1110 0000 mmm1", "vrmulh", MVE_QQQ, binary, RoundingMulHigh),
    {"1110 1111 0000 nnn0 ddd0 0001 0101 mmm0", "vand " MVE_QQQ, kMve, straight<binary<And, u64>>},
    {"1110 1111 0001 nnn0 ddd0 0001 0101 mmm0", "vbic " MVE_QQQ, kMve, straight<binary<Bic, u64>>},
    {"1110 1111 0010 nnn0 ddd0 0001 0101 mmm0", "vorr " MVE_QQQ, kMve, straight<binary<Orr, u64>>},
    {"1110 1111 0011 nnn0 ddd0 0001 0101 mmm0", "vorn " MVE_QQQ, kMve, straight<binary<Orn, u64>>},
    {"1111 1111 0000 nnn0 ddd0 0001 0101 mmm0", "veor " MVE_QQQ, kMve, straight<binary<Eor, u64>>},

    LONG_BHW("1110", " nnn1 ddd0 1110 0000 mmm0", "vmullb", "s", multiplyLong, false, s),
    LONG_BHW("1111", " nnn1 ddd0 1110 0000 mmm0", "vmullb", "u", multiplyLong, false, u),
    LONG_BHW("1110", " nnn1 ddd1 1110 0000 mmm0", "vmullt", "s", multiplyLong, true, s),
    LONG_BHW("1111", " nnn1 ddd1 1110 0000 mmm0", "vmullt", "u", multiplyLong, true, u),
    {"1110 1110 0011 nnn1 ddd0 1110 0000 mmm0", "vmullb.p8 " MVE_QQQ, kMve,
     straight<multiplyPolynomial<false, u8>>},
    {"1111 1110 0011 nnn1 ddd0 1110 0000 mmm0", "vmullb.p16 " MVE_QQQ, kMve,
     straight<multiplyPolynomial<false, u16>>},
    {"1110 1110 0011 nnn1 ddd1 1110 0000 mmm0", "vmullt.p8 " MVE_QQQ, kMve,
     straight<multiplyPolynomial<true, u8>>},
    {"1111 1110 0011 nnn1 ddd1 1110 0000 mmm0", "vmullt.p16 " MVE_QQQ, kMve,
     straight<multiplyPolynomial<true, u16>>},
    {"1110 1110 0011 nnn0 ddd0 1111 0000 mmm1", "vqdmullb.s16 " MVE_QQQ, kMve,
     straight<doublingMultiplyLong<false, s16, false>>},
    {"1111 1110 0011 nnn0 ddd0 1111 0000 mmm1", "vqdmullb.s32 " MVE_QQQ, kMve,
     straight<doublingMultiplyLong<false, s32, false>>},
    {"1110 1110 0011 nnn0 ddd1 1111 0000 mmm1", "vqdmullt.s16 " MVE_QQQ, kMve,
     straight<doublingMultiplyLong<true, s16, false>>},
    {"1111 1110 0011 nnn0 ddd1 1111 0000 mmm1", "vqdmullt.s32 " MVE_QQQ, kMve,
     straight<doublingMultiplyLong<true, s32, false>>},

    DUAL("1110", "0", "0", "vqdmladh", false, false, false),
    DUAL("1110", "1", "0", "vqdmladhx", false, true, false),
    DUAL("1110", "0", "1", "vqrdmladh", false, false, true),
    DUAL("1110", "1", "1", "vqrdmladhx", false, true, true),
    DUAL("1111", "0", "0", "vqdmlsdh", true, false, false),
    DUAL("1111", "1", "0", "vqdmlsdhx", true, true, false),
    DUAL("1111", "0", "1", "vqrdmlsdh", true, false, true),
    DUAL("1111", "1", "1", "vqrdmlsdhx", true, true, true),

    COMPLEX("1110", "0", "vhcadd", "s", ", #90", false, true, s),
    COMPLEX("1110", "1", "vhcadd", "s", ", #270", true, true, s),
    COMPLEX("1111", "0", "vcadd", "i", ", #90", false, false, u),
    COMPLEX("1111", "1", "vcadd", "i", ", #270", true, false, u),
    {"1110 1110 0011 nnn0 ddd0 1111 0000 mmm0", "vadc.i32 " MVE_QQQ, kMve,
     straight<addWithCarry<false, false>>},
    {"1110 1110 0011 nnn0 ddd1 1111 0000 mmm0", "vadci.i32 " MVE_QQQ, kMve,
     straight<addWithCarry<false, true>>},
    {"1111 1110 0011 nnn0 ddd0 1111 0000 mmm0", "vsbc.i32 " MVE_QQQ, kMve,
     straight<addWithCarry<true, false>>},
    {"1111 1110 0011 nnn0 ddd1 1111 0000 mmm0", "vsbci.i32 " MVE_QQQ, kMve,
     straight<addWithCarry<true, true>>},

    // A vector and a core register.
    MVE_ROWS_R("1110 1110 00", " nnn1 ddd0 1111 0100 mmmm", "vadd", "i", binaryScalar, Add, u),
    MVE_ROWS_R("1110 1110 00", " nnn1 ddd1 1111 0100 mmmm", "vsub", "i", binaryScalar, Sub, u),
    MVE_ROWS_R("1110 1110 00", " nnn1 ddd1 1110 0110 mmmm", "vmul", "i", binaryScalar, Mul, u),
    MVE_ROWS_R("111- 1110 00", " nnn1 ddd0 1110 0100 mmmm", "vmla", "i", accumulateScalar, MultiplyAdd, u),
    MVE_ROWS_R("111- 1110 00", " nnn1 ddd1 1110 0100 mmmm", "vmlas", "i", accumulateScalar, MultiplyAddScalar,
               u),
    MVE_ROWS_SU_R("1110 00", " nnn0 ddd0 1111 0100 mmmm", "vhadd", binaryScalar, HalvingAdd),
    MVE_ROWS_SU_R("1110 00", " nnn0 ddd1 1111 0100 mmmm", "vhsub", binaryScalar, HalvingSub),
    MVE_ROWS_SU_R("1110 00", " nnn0 ddd0 1111 0110 mmmm", "vqadd", saturatingScalar, ExactAdd),
    MVE_ROWS_SU_R("1110 00", " nnn0 ddd1 1111 0110 mmmm", "vqsub", saturatingScalar, ExactSub),
    MVE_ROWS_R("1110 1110 00", " nnn1 ddd0 1110 0110 mmmm", "vqdmulh", "s", saturatingScalar, DoublingMulHigh,
               s),
    MVE_ROWS_R("1111 1110 00", " nnn1 ddd0 1110 0110 mmmm", "vqrdmulh", "s", saturatingScalar,
               RoundingDoublingMulHigh, s),
    ACCUMULATE("0", "0110", "vqdmlah", false, false),
    ACCUMULATE("0", "0100", "vqrdmlah", false, true),
    ACCUMULATE("1", "0110", "vqdmlash", true, false),
    ACCUMULATE("1", "0100", "vqrdmlash", true, true),
    MVE_ROWS_R("1111 1110 00", " nnn1 ddd1 1110 0110 mmmm", "vbrsr", "", binaryScalar, ReverseBits, u),
    {"1110 1110 0011 nnn0 ddd0 1111 0110 mmmm", "vqdmullb.s16 " MVE_QQR, kMve,
     straight<doublingMultiplyLong<false, s16, true>>, scalarOperand},
    {"1111 1110 0011 nnn0 ddd0 1111 0110 mmmm", "vqdmullb.s32 " MVE_QQR, kMve,
     straight<doublingMultiplyLong<false, s32, true>>, scalarOperand},
    {"1110 1110 0011 nnn0 ddd1 1111 0110 mmmm", "vqdmullt.s16 " MVE_QQR, kMve,
     straight<doublingMultiplyLong<true, s16, true>>, scalarOperand},
    {"1111 1110 0011 nnn0 ddd1 1111 0110 mmmm", "vqdmullt.s32 " MVE_QQR, kMve,
     straight<doublingMultiplyLong<true, s32, true>>, scalarOperand},
};

}  // namespace
}  // namespace mve

std::span<const Encoding> mveIntegerEncodings() {
  return mve::kIntegerRows;
}

}  // namespace carina::cpu_m
