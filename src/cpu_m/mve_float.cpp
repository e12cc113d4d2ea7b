// SPDX-License-Identifier: Apache-2.0
// Vector floating point. Arithmetic follows StandardFPSCRValue(): denormals are flushed (half precision:
// according to FPSCR.FZ16), NaN results are the default NaN, results are rounded to nearest. Only active
// elements raise flags.
#include "cpu_m/fp_arith.hpp"
#include "cpu_m/fp_fast.hpp"
#include "cpu_m/mve.hpp"

namespace carina::cpu_m {
namespace mve {
namespace {

/// Calls lane(i, context) for the elements with at least one active byte; inactive bytes are masked later. An
/// element whose lowest byte (FlagByte, if the source is the upper half) is inactive raises no flags.
template <class T, u32 FlagByte = 0, class Lane>
void forActive(State& s, Predicate where, Lane lane) {
  FpContext context = FpContext::standard(s.fpscr);
  if (where.all()) {
    for (u32 i = 0; i < kLanes<T>; ++i) lane(i, context);
  } else {
    constexpr u32 kBytes = (1u << sizeof(T)) - 1;
    for (u32 i = 0; i < kLanes<T>; ++i) {
      const u32 bytes = where.bytes >> (i * sizeof(T)) & kBytes;
      if ((bytes >> FlagByte & 1) != 0) {
        lane(i, context);
      } else if (bytes != 0) {
        FpContext silent = context;
        lane(i, silent);
      }
    }
  }
  s.fpscr |= context.flags;
}

/// The result of `slow(i, context)` for each element. `fast(i, result, inexact)` is tried on whole vectors:
/// it returns 1 if its result is valid (fp_fast.hpp).
template <class T, class Fast, class Slow>
Vector<T> evaluate(State& s, Predicate where, Fast fast, Slow slow) {
  Vector<T> r;
  if (where.all()) {
    int good = 1, inexact = 0;
    for (u32 i = 0; i < kLanes<T>; ++i) good &= fast(i, r[i], inexact);
    if (good != 0) [[likely]] {
      if (inexact != 0) s.fpscr |= fp_flag::kInexact;
      return r;
    }
  }
  r = {};
  forActive<T>(s, where, [&](u32 i, FpContext& context) { r[i] = slow(i, context); });
  return r;
}

// --- element by element

template <class T>
struct FloatAdd {
  static T run(T a, T b, FpContext& context) { return fpAdd(a, b, context); }
  static int fast(T a, T b, T& r, int& inexact) { return fp_fast::add(a, b, r, inexact); }
};
template <class T>
struct FloatSub {
  static T run(T a, T b, FpContext& context) { return fpSub(a, b, context); }
  static int fast(T a, T b, T& r, int& inexact) { return fp_fast::add(a, fpNeg(b), r, inexact); }
};
template <class T>
struct FloatMul {
  static T run(T a, T b, FpContext& context) { return fpMul(a, b, context); }
  static int fast(T a, T b, T& r, int& inexact) { return fp_fast::mul(a, b, r, inexact); }
};
template <class T>
struct FloatDifference {
  static T run(T a, T b, FpContext& context) { return fpAbs(fpSub(a, b, context)); }
  static int fast(T a, T b, T& r, int& inexact) {
    const int good = fp_fast::add(a, fpNeg(b), r, inexact);
    r = fpAbs(r);
    return good;
  }
};
template <class T>
struct FloatMax {
  static T run(T a, T b, FpContext& context) { return fpMaxNum(a, b, context); }
  static int fast(T a, T b, T& r, int&) { return fp_fast::maxNum(a, b, r); }
};
template <class T>
struct FloatMin {
  static T run(T a, T b, FpContext& context) { return fpMinNum(a, b, context); }
  static int fast(T a, T b, T& r, int&) { return fp_fast::minNum(a, b, r); }
};
template <class T>
struct FloatMaxMagnitude {
  static T run(T a, T b, FpContext& context) { return fpMaxNum(fpAbs(a), fpAbs(b), context); }
  static int fast(T a, T b, T& r, int&) { return fp_fast::maxNum(fpAbs(a), fpAbs(b), r); }
};
template <class T>
struct FloatMinMagnitude {
  static T run(T a, T b, FpContext& context) { return fpMinNum(fpAbs(a), fpAbs(b), context); }
  static int fast(T a, T b, T& r, int&) { return fp_fast::minNum(fpAbs(a), fpAbs(b), r); }
};

/// Qd = OP(Qn, Qm); `Accumulating`: OP(Qd, Qm).
template <template <class> class OP, class T, bool Accumulating>
void floatBinary(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> n = readQ<T>(s, Accumulating ? op.d : op.n), m = readQ<T>(s, op.m);
  const Vector<T> r = evaluate<T>(
      s, where, [&](u32 i, T& result, int& inexact) { return OP<T>::fast(n[i], m[i], result, inexact); },
      [&](u32 i, FpContext& context) { return OP<T>::run(n[i], m[i], context); });
  writeQ(s, op.d, r, where);
  advance(s);
}

template <template <class> class OP, class T>
void floatScalar(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> n = readQ<T>(s, op.n);
  const T m = scalar<T>(s, op);
  const Vector<T> r = evaluate<T>(
      s, where, [&](u32 i, T& result, int& inexact) { return OP<T>::fast(n[i], m, result, inexact); },
      [&](u32 i, FpContext& context) { return OP<T>::run(n[i], m, context); });
  writeQ(s, op.d, r, where);
  advance(s);
}

template <bool Subtract, class T>
void fusedMultiplyAdd(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> d = readQ<T>(s, op.d), m = readQ<T>(s, op.m);
  Vector<T> n = readQ<T>(s, op.n);
  if (Subtract) {
    for (T& lane : n.lane) lane = fpNeg(lane);
  }
  const Vector<T> r = evaluate<T>(
      s, where,
      [&](u32 i, T& result, int& inexact) { return fp_fast::mulAdd(d[i], n[i], m[i], result, inexact); },
      [&](u32 i, FpContext& context) { return fpMulAdd(d[i], n[i], m[i], context); });
  writeQ(s, op.d, r, where);
  advance(s);
}

/// Qd + Qn * Rm, or Qd * Qn + Rm.
template <bool IntoScalar, class T>
void fusedMultiplyAddScalar(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> d = readQ<T>(s, op.d), n = readQ<T>(s, op.n);
  const T m = scalar<T>(s, op);
  const Vector<T> r = evaluate<T>(
      s, where,
      [&](u32 i, T& result, int& inexact) {
        return fp_fast::mulAdd(IntoScalar ? m : d[i], n[i], IntoScalar ? d[i] : m, result, inexact);
      },
      [&](u32 i, FpContext& context) {
        return IntoScalar ? fpMulAdd(m, d[i], n[i], context) : fpMulAdd(d[i], n[i], m, context);
      });
  writeQ(s, op.d, r, where);
  advance(s);
}

template <class T>
struct FloatAbs {
  static T run(T value) { return fpAbs(value); }
};
template <class T>
struct FloatNeg {
  static T run(T value) { return fpNeg(value); }
};

// --- complex numbers

template <bool By270, class T>
void floatComplexAdd(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> n = readQ<T>(s, op.n), m = readQ<T>(s, op.m);
  Vector<T> turned;
  for (u32 i = 0; i < kLanes<T>; i += 2) {
    turned[i] = By270 ? m[i + 1] : fpNeg(m[i + 1]);
    turned[i + 1] = By270 ? fpNeg(m[i]) : m[i];
  }
  const Vector<T> r = evaluate<T>(
      s, where,
      [&](u32 i, T& result, int& inexact) { return fp_fast::add(n[i], turned[i], result, inexact); },
      [&](u32 i, FpContext& context) { return fpAdd(n[i], turned[i], context); });
  writeQ(s, op.d, r, where);
  advance(s);
}

/// Rotated by Turns times 90 degrees: the product of the real (even) or imaginary part of Qn and Qm or
/// pairwise exchanged Qm.
template <u32 Turns, bool Accumulates, class T>
void complexMultiply(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> d = readQ<T>(s, op.d), n = readQ<T>(s, op.n), m = readQ<T>(s, op.m);
  constexpr u32 kPart = Turns & 1;
  Vector<T> a, b;
  for (u32 i = 0; i < kLanes<T>; i += 2) {
    a[i] = Turns == 1 || Turns == 2 ? fpNeg(n[i + kPart]) : n[i + kPart];
    a[i + 1] = Turns >= 2 ? fpNeg(n[i + kPart]) : n[i + kPart];
    b[i] = m[i + kPart];
    b[i + 1] = m[i + 1 - kPart];
  }
  const Vector<T> r = evaluate<T>(
      s, where,
      [&](u32 i, T& result, int& inexact) {
        return Accumulates ? fp_fast::mulAdd(d[i], a[i], b[i], result, inexact)
                           : fp_fast::mul(a[i], b[i], result, inexact);
      },
      [&](u32 i, FpContext& context) {
        return Accumulates ? fpMulAdd(d[i], a[i], b[i], context) : fpMul(a[i], b[i], context);
      });
  writeQ(s, op.d, r, where);
  advance(s);
}

// --- comparing

enum class Relation : u8 { Equal, GreaterOrEqual, Greater };

/// The inverse relations hold for NaNs. Rm = 15 compares with 0.
template <Relation Kind, bool Inverse, class T, bool Scalar>
void floatCompare(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> n = readQ<T>(s, op.n);
  const Vector<T> m = Scalar ? Vector<T>{} : readQ<T>(s, op.m);
  const T scalarM = Scalar && op.m != 15 ? scalar<T>(s, op) : T{0};
  u32 bytes = 0;
  int good = where.all();
  for (u32 i = 0; i < kLanes<T>; ++i)
    good &= fp_fast::normalOrZero(n[i]) & fp_fast::normalOrZero(Scalar ? scalarM : m[i]);
  const auto note = [&bytes](u32 i, bool equal, bool greater) {
    const bool holds = Kind == Relation::Equal     ? equal
                       : Kind == Relation::Greater ? greater
                                                   : equal || greater;
    if (holds != Inverse) bytes |= ((1u << sizeof(T)) - 1) << (i * sizeof(T));
  };
  if (good != 0) {
    for (u32 i = 0; i < kLanes<T>; ++i) {
      const auto a = fp_fast::orderKey(n[i]), b = fp_fast::orderKey(Scalar ? scalarM : m[i]);
      note(i, a == b, a > b);
    }
  } else {
    forActive<T>(s, where, [&](u32 i, FpContext& context) {
      const unsigned nzcv = fpCompare(n[i], Scalar ? scalarM : m[i], true, context);
      note(i, nzcv == 0b0110, nzcv == 0b0010);
    });
  }
  setPredicate(s, bytes, where, op.x);
}

/// In reductions, signalling NaNs are treated as quiet once they have raised Invalid.
template <class T>
T quietened(T value, FpContext& context) {
  if (!fpIsSignallingNan(value)) return value;
  context.flags |= fp_flag::kInvalid;
  return static_cast<T>(value | FpLayout<T>::kQuiet);
}

/// Reduces Rda (for half precision its lower half) and all active elements.
template <class T, bool Magnitude, T (*Function)(T, T, FpContext&)>
void floatAcross(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> m = readQ<T>(s, op.m);
  T best = static_cast<T>(s.r[op.d]);
  forActive<T>(s, where, [&](u32 i, FpContext& context) {
    if (!where.lane<T>(i)) return;
    const T lane = quietened(Magnitude ? fpAbs(m[i]) : m[i], context);
    best = Function(quietened(best, context), lane, context);
  });
  s.r[op.d] = best;
  advance(s);
}
// --- rounding and converting

template <Rounding Mode, bool Exact, class T>
void floatRound(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> m = readQ<T>(s, op.m);
  Vector<T> r{};
  forActive<T>(s, where,
               [&](u32 i, FpContext& context) { r[i] = fpRoundToIntegral(m[i], Mode, Exact, context); });
  writeQ(s, op.d, r, where);
  advance(s);
}

/// Op::x fraction bits; T is the format, and its width is that of the integers.
template <Rounding Mode, bool Unsigned, class T>
void toFixed(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> m = readQ<T>(s, op.m);
  const Vector<T> r = evaluate<T>(
      s, where,
      [&](u32 i, T& result, int& inexact) {
        if constexpr (sizeof(T) == 4 && Mode == Rounding::Zero) {
          return fp_fast::toInteger(m[i], Unsigned, result, inexact) & (op.x == 0);
        }
        return 0;
      },
      [&](u32 i, FpContext& context) {
        return static_cast<T>(fpToFixed(m[i], op.x, kWidth<T>, Unsigned, Mode, context));
      });
  writeQ(s, op.d, r, where);
  advance(s);
}
template <bool Unsigned, class T>
void fromFixed(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<T> m = readQ<T>(s, op.m);
  const Vector<T> r = evaluate<T>(
      s, where,
      [&](u32 i, T& result, int& inexact) {
        if constexpr (sizeof(T) == 4 && !Unsigned)
          return fp_fast::fromInteger(m[i], result, inexact) & (op.x == 0);
        return 0;
      },
      [&](u32 i, FpContext& context) {
        const u64 value =
            Unsigned ? u64{m[i]} : static_cast<u64>(s64{static_cast<std::make_signed_t<T>>(m[i])});
        return fpFromFixed<T>(value, op.x, Unsigned, Rounding::NearestEven, context);
      });
  writeQ(s, op.d, r, where);
  advance(s);
}
/// Field x: the width minus the fraction bits.
template <int Width>
Decoded fraction(Op& op, DecodeContext&) {
  op.x = static_cast<u8>(Width - op.x);
  return Decoded::Ok;
}

/// Single precision to the even or odd half-precision elements.
template <bool Top>
void toHalves(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<u32> m = readQ<u32>(s, op.m);
  Vector<u16> r{};
  forActive<u32>(s, where,
                 [&](u32 i, FpContext& context) { r[2 * i + Top] = fpConvert<u16>(m[i], context); });
  writeQ(s, op.d, r, where.onlyAlternate<u16>(Top));
  advance(s);
}
template <bool Top>
void fromHalves(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<u16> m = readQ<u16>(s, op.m);
  Vector<u32> r{};
  forActive<u32, 2 * Top>(s, where,
                          [&](u32 i, FpContext& context) { r[i] = fpConvert<u32>(m[2 * i + Top], context); });
  writeQ(s, op.d, r, where);
  advance(s);
}

// --- rows

// Both formats, if bit 20 selects half precision. F is a macro from the lane type to the handler.
#define BY_BIT_20(top, b21, tail, name, F)                                                               \
  {top " 1111 00" b21 "0 nnn0 ddd0 " tail " mmm0", name ".f32 " MVE_QQQ, kMveFloat, straight<F(u32)>}, { \
    top " 1111 00" b21 "1 nnn0 ddd0 " tail " mmm0", name ".f16 " MVE_QQQ, kMveFloat, straight<F(u16)>    \
  }
// If bit 28 does.
#define BY_BIT_28(middle, name, operands, F, prepare)                              \
  {"1110 " middle, name ".f32 " operands, kMveFloat, straight<F(u32)>, prepare}, { \
    "1111 " middle, name ".f16 " operands, kMveFloat, straight<F(u16)>, prepare    \
  }
// If bits 19:18 do.
#define BY_SIZE(low, tail, name, type32, type16, F)                                                       \
  {"1111 1111 1011 10" low " ddd0 " tail " mmm0", name type32 " " MVE_QQ, kMveFloat, straight<F(u32)>}, { \
    "1111 1111 1011 01" low " ddd0 " tail " mmm0", name type16 " " MVE_QQ, kMveFloat, straight<F(u16)>    \
  }
#define COMPLEX(hi, name, angle, F)                                                                   \
  {hi "1 nnn0 ddd0 1000 0100 mmm0", name ".f32 " MVE_QQQ ", #" angle, kMveFloat, straight<F(u32)>}, { \
    hi "0 nnn0 ddd0 1000 0100 mmm0", name ".f16 " MVE_QQQ ", #" angle, kMveFloat, straight<F(u16)>    \
  }
#define COMPLEX_MULTIPLY(b12, b0, angle, F)                                                         \
  {"1111 1110 0011 nnn0 ddd" b12 " 1110 0000 mmm" b0, "vcmul.f32 " MVE_QQQ ", #" angle, kMveFloat,  \
   straight<F(u32)>},                                                                               \
  {                                                                                                 \
    "1110 1110 0011 nnn0 ddd" b12 " 1110 0000 mmm" b0, "vcmul.f16 " MVE_QQQ ", #" angle, kMveFloat, \
        straight<F(u16)>                                                                            \
  }
#define COMPARE_FORMAT(top, b12, b7, b0, type, text, Kind, Inverse, T)                                      \
  {top " 1110 0011 nnn1 000" b12 " 1111 " b7 "000 mmm" b0, "vcmp." type " " text ", q{n}, q{m}", kMveFloat, \
   straight<floatCompare<Relation::Kind, Inverse, T, false>>},                                              \
      {top " 1110 0x11 nnn1 xxx" b12 " 1111 " b7 "000 mmm" b0, "vp{vpt}." type " " text ", q{n}, q{m}",     \
       kMveFloat, straight<floatCompare<Relation::Kind, Inverse, T, false>>},                               \
      {top " 1110 0011 nnn1 000" b12 " 1111 " b7 "1" b0 "0 mmmm", "vcmp." type " " text ", q{n}, {Rm}",     \
       kMveFloat, straight<floatCompare<Relation::Kind, Inverse, T, true>>, comparedScalar},                \
  {                                                                                                         \
    top " 1110 0x11 nnn1 xxx" b12 " 1111 " b7 "1" b0 "0 mmmm", "vp{vpt}." type " " text ", q{n}, {Rm}",     \
        kMveFloat, straight<floatCompare<Relation::Kind, Inverse, T, true>>, comparedScalar                 \
  }
#define COMPARE(b12, b7, b0, text, Kind, Inverse)                       \
  COMPARE_FORMAT("1110", b12, b7, b0, "f32", text, Kind, Inverse, u32), \
      COMPARE_FORMAT("1111", b12, b7, b0, "f16", text, Kind, Inverse, u16)
#define FIXED(top, sign, U)                                                                          \
  {top " 1111 1011 xxxx ddd0 1100 0101 mmm0", "vcvt.f16." sign "16 " MVE_QQ ", #{x}", kMveFloat,     \
   straight<fromFixed<U, u16>>, fraction<16>},                                                       \
      {top " 1111 1011 xxxx ddd0 1101 0101 mmm0", "vcvt." sign "16.f16 " MVE_QQ ", #{x}", kMveFloat, \
       straight<toFixed<Rounding::Zero, U, u16>>, fraction<16>},                                     \
      {top " 1111 101x xxxx ddd0 1110 0101 mmm0", "vcvt.f32." sign "32 " MVE_QQ ", #{x}", kMveFloat, \
       straight<fromFixed<U, u32>>, fraction<32>},                                                   \
  {                                                                                                  \
    top " 1111 101x xxxx ddd0 1111 0101 mmm0", "vcvt." sign "32.f32 " MVE_QQ ", #{x}", kMveFloat,    \
        straight<toFixed<Rounding::Zero, U, u32>>, fraction<32>                                      \
  }

#define ADD(T) floatBinary<FloatAdd, T, false>
#define SUB(T) floatBinary<FloatSub, T, false>
#define MUL(T) floatBinary<FloatMul, T, false>
#define ABD(T) floatBinary<FloatDifference, T, false>
#define MAXNM(T) floatBinary<FloatMax, T, false>
#define MINNM(T) floatBinary<FloatMin, T, false>
#define MAXNMA(T) floatBinary<FloatMaxMagnitude, T, true>
#define MINNMA(T) floatBinary<FloatMinMagnitude, T, true>
#define FMA(T) fusedMultiplyAdd<false, T>
#define FMS(T) fusedMultiplyAdd<true, T>
#define ADD_R(T) floatScalar<FloatAdd, T>
#define SUB_R(T) floatScalar<FloatSub, T>
#define MUL_R(T) floatScalar<FloatMul, T>
#define FMA_R(T) fusedMultiplyAddScalar<false, T>
#define FMAS_R(T) fusedMultiplyAddScalar<true, T>
#define CADD_90(T) floatComplexAdd<false, T>
#define CADD_270(T) floatComplexAdd<true, T>
#define CMLA_0(T) complexMultiply<0, true, T>
#define CMLA_90(T) complexMultiply<1, true, T>
#define CMLA_180(T) complexMultiply<2, true, T>
#define CMLA_270(T) complexMultiply<3, true, T>
#define CMUL_0(T) complexMultiply<0, false, T>
#define CMUL_90(T) complexMultiply<1, false, T>
#define CMUL_180(T) complexMultiply<2, false, T>
#define CMUL_270(T) complexMultiply<3, false, T>
#define ABS(T) unary<FloatAbs, T>
#define NEG(T) unary<FloatNeg, T>
#define RINTN(T) floatRound<Rounding::NearestEven, false, T>
#define RINTX(T) floatRound<Rounding::NearestEven, true, T>
#define RINTA(T) floatRound<Rounding::NearestAway, false, T>
#define RINTZ(T) floatRound<Rounding::Zero, false, T>
#define RINTM(T) floatRound<Rounding::MinusInfinity, false, T>
#define RINTP(T) floatRound<Rounding::PlusInfinity, false, T>
#define CVTA_S(T) toFixed<Rounding::NearestAway, false, T>
#define CVTA_U(T) toFixed<Rounding::NearestAway, true, T>
#define CVTN_S(T) toFixed<Rounding::NearestEven, false, T>
#define CVTN_U(T) toFixed<Rounding::NearestEven, true, T>
#define CVTP_S(T) toFixed<Rounding::PlusInfinity, false, T>
#define CVTP_U(T) toFixed<Rounding::PlusInfinity, true, T>
#define CVTM_S(T) toFixed<Rounding::MinusInfinity, false, T>
#define CVTM_U(T) toFixed<Rounding::MinusInfinity, true, T>
#define CVT_S(T) toFixed<Rounding::Zero, false, T>
#define CVT_U(T) toFixed<Rounding::Zero, true, T>
#define CVT_FROM_S(T) fromFixed<false, T>
#define CVT_FROM_U(T) fromFixed<true, T>
#define MAXNMV(T) floatAcross<T, false, fpMaxNum<T>>
#define MINNMV(T) floatAcross<T, false, fpMinNum<T>>
#define MAXNMAV(T) floatAcross<T, true, fpMaxNum<T>>
#define MINNMAV(T) floatAcross<T, true, fpMinNum<T>>

const Encoding kFloatRows[] = {
    BY_BIT_20("1110", "0", "1101 0100", "vadd", ADD),
    BY_BIT_20("1110", "1", "1101 0100", "vsub", SUB),
    BY_BIT_20("1111", "0", "1101 0101", "vmul", MUL),
    BY_BIT_20("1110", "0", "1100 0101", "vfma", FMA),
    BY_BIT_20("1110", "1", "1100 0101", "vfms", FMS),
    BY_BIT_20("1111", "1", "1101 0100", "vabd", ABD),
    BY_BIT_20("1111", "0", "1111 0101", "vmaxnm", MAXNM),
    BY_BIT_20("1111", "1", "1111 0101", "vminnm", MINNM),
    BY_BIT_28("1110 0011 1111 ddd0 1110 1000 mmm1", "vmaxnma", MVE_QQ, MAXNMA, nullptr),
    BY_BIT_28("1110 0011 1111 ddd1 1110 1000 mmm1", "vminnma", MVE_QQ, MINNMA, nullptr),
    BY_BIT_28("1110 0011 nnn0 ddd0 1111 0100 mmmm", "vadd", MVE_QQR, ADD_R, scalarOperand),
    BY_BIT_28("1110 0011 nnn0 ddd1 1111 0100 mmmm", "vsub", MVE_QQR, SUB_R, scalarOperand),
    BY_BIT_28("1110 0011 nnn1 ddd0 1110 0110 mmmm", "vmul", MVE_QQR, MUL_R, scalarOperand),
    BY_BIT_28("1110 0011 nnn1 ddd0 1110 0100 mmmm", "vfma", MVE_QQR, FMA_R, scalarOperand),
    BY_BIT_28("1110 0011 nnn1 ddd1 1110 0100 mmmm", "vfmas", MVE_QQR, FMAS_R, scalarOperand),
    BY_BIT_28("1110 1110 1110 dddd 1111 0000 mmm0", "vmaxnmv", "{Rd}, q{m}", MAXNMV, scalarResult),
    BY_BIT_28("1110 1110 1110 dddd 1111 1000 mmm0", "vminnmv", "{Rd}, q{m}", MINNMV, scalarResult),
    BY_BIT_28("1110 1110 1100 dddd 1111 0000 mmm0", "vmaxnmav", "{Rd}, q{m}", MAXNMAV, scalarResult),
    BY_BIT_28("1110 1110 1100 dddd 1111 1000 mmm0", "vminnmav", "{Rd}, q{m}", MINNMAV, scalarResult),

    COMPLEX("1111 1100 100", "vcadd", "90", CADD_90),
    COMPLEX("1111 1101 100", "vcadd", "270", CADD_270),
    COMPLEX("1111 1100 001", "vcmla", "0", CMLA_0),
    COMPLEX("1111 1100 101", "vcmla", "90", CMLA_90),
    COMPLEX("1111 1101 001", "vcmla", "180", CMLA_180),
    COMPLEX("1111 1101 101", "vcmla", "270", CMLA_270),
    COMPLEX_MULTIPLY("0", "0", "0", CMUL_0),
    COMPLEX_MULTIPLY("0", "1", "90", CMUL_90),
    COMPLEX_MULTIPLY("1", "0", "180", CMUL_180),
    COMPLEX_MULTIPLY("1", "1", "270", CMUL_270),

    COMPARE("0", "0", "0", "eq", Equal, false),
    COMPARE("0", "1", "0", "ne", Equal, true),
    COMPARE("1", "0", "0", "ge", GreaterOrEqual, false),
    COMPARE("1", "1", "0", "lt", GreaterOrEqual, true),
    COMPARE("1", "0", "1", "gt", Greater, false),
    COMPARE("1", "1", "1", "le", Greater, true),

    BY_SIZE("01", "0111 0100", "vabs", ".f32", ".f16", ABS),
    BY_SIZE("01", "0111 1100", "vneg", ".f32", ".f16", NEG),
    BY_SIZE("10", "0100 0100", "vrintn", ".f32", ".f16", RINTN),
    BY_SIZE("10", "0100 1100", "vrintx", ".f32", ".f16", RINTX),
    BY_SIZE("10", "0101 0100", "vrinta", ".f32", ".f16", RINTA),
    BY_SIZE("10", "0101 1100", "vrintz", ".f32", ".f16", RINTZ),
    BY_SIZE("10", "0110 1100", "vrintm", ".f32", ".f16", RINTM),
    BY_SIZE("10", "0111 1100", "vrintp", ".f32", ".f16", RINTP),
    BY_SIZE("11", "0000 0100", "vcvta", ".s32.f32", ".s16.f16", CVTA_S),
    BY_SIZE("11", "0000 1100", "vcvta", ".u32.f32", ".u16.f16", CVTA_U),
    BY_SIZE("11", "0001 0100", "vcvtn", ".s32.f32", ".s16.f16", CVTN_S),
    BY_SIZE("11", "0001 1100", "vcvtn", ".u32.f32", ".u16.f16", CVTN_U),
    BY_SIZE("11", "0010 0100", "vcvtp", ".s32.f32", ".s16.f16", CVTP_S),
    BY_SIZE("11", "0010 1100", "vcvtp", ".u32.f32", ".u16.f16", CVTP_U),
    BY_SIZE("11", "0011 0100", "vcvtm", ".s32.f32", ".s16.f16", CVTM_S),
    BY_SIZE("11", "0011 1100", "vcvtm", ".u32.f32", ".u16.f16", CVTM_U),
    BY_SIZE("11", "0111 0100", "vcvt", ".s32.f32", ".s16.f16", CVT_S),
    BY_SIZE("11", "0111 1100", "vcvt", ".u32.f32", ".u16.f16", CVT_U),
    BY_SIZE("11", "0110 0100", "vcvt", ".f32.s32", ".f16.s16", CVT_FROM_S),
    BY_SIZE("11", "0110 1100", "vcvt", ".f32.u32", ".f16.u16", CVT_FROM_U),
    FIXED("1110", "s", false),
    FIXED("1111", "u", true),
    {"1110 1110 0011 1111 ddd0 1110 0000 mmm1", "vcvtb.f16.f32 " MVE_QQ, kMveFloat,
     straight<toHalves<false>>},
    {"1110 1110 0011 1111 ddd1 1110 0000 mmm1", "vcvtt.f16.f32 " MVE_QQ, kMveFloat, straight<toHalves<true>>},
    {"1111 1110 0011 1111 ddd0 1110 0000 mmm1", "vcvtb.f32.f16 " MVE_QQ, kMveFloat,
     straight<fromHalves<false>>},
    {"1111 1110 0011 1111 ddd1 1110 0000 mmm1", "vcvtt.f32.f16 " MVE_QQ, kMveFloat,
     straight<fromHalves<true>>},
};

}  // namespace
}  // namespace mve

std::span<const Encoding> mveFloatEncodings() {
  return mve::kFloatRows;
}

}  // namespace carina::cpu_m
