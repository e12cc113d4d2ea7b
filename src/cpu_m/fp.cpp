// SPDX-License-Identifier: Apache-2.0
// Scalar floating-point data processing (FPv5 and half precision).
#include "cpu_m/fp_arith.hpp"
#include "cpu_m/fp_registers.hpp"

namespace carina::cpu_m {
namespace fp {
namespace {

/// Common parts of all instructions here: checks access to the unit, applies FPSCR's modes, updates its
/// flags.
template <class F>
void withContext(Core& core, F body) {
  core.useFloatingPoint();
  State& s = core.state;
  FpContext context = FpContext::scalar(s.fpscr);
  body(s, context);
  s.fpscr |= context.flags;
}

// --- arithmetic

enum class Fused : uint8_t { No, Yes };

template <class T, T (*Function)(T, T, FpContext&)>
void binary(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    write<T>(s, op.d, Function(read<T>(s, op.n), read<T>(s, op.m), context));
  });
}

template <class T>
T negatedProduct(T a, T b, FpContext& context) {
  return fpNeg(fpMul(a, b, context));
}

/// (+-Sd) + (+-(Sn * Sm)), rounded twice or once.
template <class T, bool NegateAddend, bool NegateProduct, Fused How>
void multiplyAdd(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    T addend = read<T>(s, op.d), n = read<T>(s, op.n);
    const T m = read<T>(s, op.m);
    if (NegateAddend) addend = fpNeg(addend);
    if (How == Fused::Yes) {
      if (NegateProduct) n = fpNeg(n);
      write<T>(s, op.d, fpMulAdd(addend, n, m, context));
    } else {
      T product = fpMul(n, m, context);
      if (NegateProduct) product = fpNeg(product);
      write<T>(s, op.d, fpAdd(addend, product, context));
    }
  });
}

template <class T>
void squareRoot(Core& core, const Op& op) {
  withContext(core,
              [&op](State& s, FpContext& context) { write<T>(s, op.d, fpSqrt(read<T>(s, op.m), context)); });
}
template <class T>
void absolute(Core& core, const Op& op) {
  core.useFloatingPoint();
  write<T>(core.state, op.d, fpAbs(read<T>(core.state, op.m)));
}
template <class T>
void negate(Core& core, const Op& op) {
  core.useFloatingPoint();
  write<T>(core.state, op.d, fpNeg(read<T>(core.state, op.m)));
}

// --- comparing and selecting

template <class T, bool Signals, bool WithZero>
void compare(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    const T other = WithZero ? T{0} : read<T>(s, op.m);
    const unsigned nzcv = fpCompare(read<T>(s, op.d), other, Signals, context);
    s.fpscr = (s.fpscr & ~kFpscrNzcv) | nzcv << 28;
  });
}

/// Op::x is the condition: EQ, VS, GE, GT.
template <class T>
void select(Core& core, const Op& op) {
  core.useFloatingPoint();
  State& s = core.state;
  constexpr uint8_t kConditions[] = {0, 6, 10, 12};
  write<T>(s, op.d, read<T>(s, conditionHolds(s, kConditions[op.x]) ? op.n : op.m));
}

// --- rounding and converting

/// Indexed by Op::y of the instructions that encode their rounding mode.
constexpr Rounding kRoundings[] = {Rounding::NearestAway, Rounding::NearestEven, Rounding::PlusInfinity,
                                   Rounding::MinusInfinity};

enum class By : uint8_t { Fpscr, Zero, Named };

Rounding roundingOf(By by, const FpContext& context, const Op& op) {
  return by == By::Fpscr ? context.rounding : by == By::Zero ? Rounding::Zero : kRoundings[op.y];
}

template <class T, By How, bool Exact>
void roundToIntegral(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    write<T>(s, op.d, fpRoundToIntegral(read<T>(s, op.m), roundingOf(How, context, op), Exact, context));
  });
}

/// To an integer in Sd; Op::x: signed.
template <class T, By How>
void toInteger(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    const uint64_t value =
        fpToFixed(read<T>(s, op.m), 0, 32, op.x == 0, roundingOf(How, context, op), context);
    s.setElement<uint32_t>(op.d, static_cast<uint32_t>(value));
  });
}
template <class T>
void fromInteger(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    const uint32_t word = s.element<uint32_t>(op.m);
    const uint64_t value =
        op.x == 0 ? word : static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(word)));
    write<T>(s, op.d, fpFromFixed<T>(value, 0, op.x == 0, context.rounding, context));
  });
}

/// In place; Op::y: unsigned, Op::w: width in bits, Op::a: fraction bits.
template <class T>
void toFixed(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    const uint64_t value = fpToFixed(read<T>(s, op.d), op.a, op.w, op.y != 0, Rounding::Zero, context);
    if constexpr (sizeof(T) == 8) {
      s.setElement<uint64_t>(op.d, value);
    } else {
      s.setElement<uint32_t>(op.d, static_cast<uint32_t>(value));
    }
  });
}
template <class T>
void fromFixed(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    auto word = sizeof(T) == 8 ? static_cast<uint32_t>(s.element<uint64_t>(op.d)) : s.element<uint32_t>(op.d);
    if (op.w == 16) word = op.y != 0 ? word & 0xffff : static_cast<uint32_t>(static_cast<int16_t>(word));
    const uint64_t value =
        op.y != 0 ? word : static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(word)));
    write<T>(s, op.d, fpFromFixed<T>(value, op.a, op.y != 0, Rounding::NearestEven, context));
  });
}

void singleToDouble(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    write<uint64_t>(s, op.d, fpConvert<uint64_t>(read<uint32_t>(s, op.m), context));
  });
}
void doubleToSingle(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    write<uint32_t>(s, op.d, fpConvert<uint32_t>(read<uint64_t>(s, op.m), context));
  });
}

/// Op::x: the upper half of the single register.
template <class T>
void fromHalf(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    write<T>(s, op.d, fpConvert<T>(s.element<uint16_t>(2u * op.m + op.x), context));
  });
}
template <class T>
void toHalf(Core& core, const Op& op) {
  withContext(core, [&op](State& s, FpContext& context) {
    s.setElement<uint16_t>(2u * op.d + op.x, fpConvert<uint16_t>(read<T>(s, op.m), context));
  });
}

// --- moves

template <class T>
void move(Core& core, const Op& op) {
  core.useFloatingPoint();
  write<T>(core.state, op.d, read<T>(core.state, op.m));
}
/// Only the upper bits of the expanded immediate are nonzero: Op::imm holds them, left-aligned.
template <class T>
void moveImmediate(Core& core, const Op& op) {
  core.useFloatingPoint();
  write<T>(core.state, op.d, static_cast<T>(static_cast<uint64_t>(op.imm) << 32 >> (64 - 8 * sizeof(T))));
}
void insertHalf(Core& core, const Op& op) {
  core.useFloatingPoint();
  core.state.setElement<uint16_t>(2u * op.d + 1, core.state.element<uint16_t>(2u * op.m));
}
void extractHalf(Core& core, const Op& op) {
  core.useFloatingPoint();
  core.state.setElement<uint32_t>(op.d, core.state.element<uint16_t>(2u * op.m + 1u));
}

// --- preparing

/// VFPExpandImm of field i to the top 32 bits of a format with `Exponent` exponent bits.
template <int Exponent>
void expandImmediate(Op& op) {
  const uint32_t sign = op.imm >> 7, b = op.imm >> 6 & 1, rest = op.imm & 0x3f;
  // Sign, NOT(b), b repeated, two bits of exponent, four of fraction.
  const uint32_t repeated = b != 0 ? (1u << (Exponent - 3)) - 1 : 0;
  op.imm = sign << 31 | (b ^ 1) << 30 | repeated << (30 - (Exponent - 3)) | rest << (30 - (Exponent - 3) - 6);
}
Decoded immediateHalf(Op& op, DecodeContext& context) {
  expandImmediate<5>(op);
  return singles(op, context);
}
Decoded immediateSingle(Op& op, DecodeContext& context) {
  expandImmediate<8>(op);
  return singles(op, context);
}
Decoded immediateDouble(Op& op, DecodeContext&) {
  expandImmediate<11>(op);
  return Decoded::Ok;
}

/// Fixed point of Width bits; fields a and x: imm4:i, the number of integer bits.
template <uint8_t Width, bool Unsigned, bool Single>
Decoded fixedPoint(Op& op, DecodeContext& context) {
  // i (bit 5) precedes imm4 in the pattern.
  const auto taken = static_cast<uint8_t>(op.a << 1 | op.x);
  if (taken > Width) return Decoded::Unpredictable;
  op.a = static_cast<uint8_t>(Width - taken);
  op.w = Width;
  op.y = Unsigned;
  return Single ? singles(op, context) : Decoded::Ok;
}
/// For handlers that use Op::y (the encoded rounding mode) and Op::x (signed integer).
template <Prepare Registers, uint8_t Mode, bool Signed>
Decoded with(Op& op, DecodeContext& context) {
  op.y = Mode;
  op.x = Signed;
  return Registers(op, context);
}
Decoded doubles(Op&, DecodeContext&) {
  return Decoded::Ok;
}
template <Prepare Registers, uint8_t Condition>
Decoded condition(Op& op, DecodeContext& context) {
  op.x = Condition;
  return Registers(op, context);
}

// One row for each format. F is a macro from the type to the handler.
#define THREE_AT(top, b23, b21, b6, name, F)                                                             \
  {top " 1110 " b23 "d" b21 " nnnn dddd 1010 n" b6 "m0 mmmm", name ".f32 s{d}, s{n}, s{m}", kFloat,      \
   straight<F(uint32_t)>, singles},                                                                      \
      {top " 1110 " b23 "0" b21 " nnnn dddd 1011 0" b6 "00 mmmm", name ".f64 d{d}, d{n}, d{m}", kDouble, \
       straight<F(uint64_t)>},                                                                           \
  {                                                                                                      \
    top " 1110 " b23 "d" b21 " nnnn dddd 1001 n" b6 "m0 mmmm", name ".f16 s{d}, s{n}, s{m}", kHalf,      \
        straight<F(uint16_t)>, singles                                                                   \
  }
#define THREE(b23, b21, b6, name, F) THREE_AT("1110", b23, b21, b6, name, F)
#define TWO(opc2, opc3, name, F)                                                             \
  {"1110 1110 1d11 " opc2 " dddd 1010 " opc3 "m0 mmmm", name ".f32 s{d}, s{m}", kFloat,      \
   straight<F(uint32_t)>, singles},                                                          \
      {"1110 1110 1011 " opc2 " dddd 1011 " opc3 "00 mmmm", name ".f64 d{d}, d{m}", kDouble, \
       straight<F(uint64_t)>},                                                               \
  {                                                                                          \
    "1110 1110 1d11 " opc2 " dddd 1001 " opc3 "m0 mmmm", name ".f16 s{d}, s{m}", kHalf,      \
        straight<F(uint16_t)>, singles                                                       \
  }
#define SELECT_ROWS(cc, name, Condition)                                                     \
  {"1111 1110 0d" cc " nnnn dddd 1010 n0m0 mmmm", name ".f32 s{d}, s{n}, s{m}", kFloat,      \
   straight<select<uint32_t>>, condition<singles, Condition>},                               \
      {"1111 1110 00" cc " nnnn dddd 1011 0000 mmmm", name ".f64 d{d}, d{n}, d{m}", kDouble, \
       straight<select<uint64_t>>, condition<doubles, Condition>},                           \
  {                                                                                          \
    "1111 1110 0d" cc " nnnn dddd 1001 n0m0 mmmm", name ".f16 s{d}, s{n}, s{m}", kHalf,      \
        straight<select<uint16_t>>, condition<singles, Condition>                            \
  }
#define COMPARE_ZERO(opc3, name, Signals)                                              \
  {"1110 1110 1d11 0101 dddd 1010 " opc3 "00 0000", name ".f32 s{d}, #0", kFloat,      \
   straight<compare<uint32_t, Signals, true>>, singles},                               \
      {"1110 1110 1011 0101 dddd 1011 " opc3 "00 0000", name ".f64 d{d}, #0", kDouble, \
       straight<compare<uint64_t, Signals, true>>},                                    \
  {                                                                                    \
    "1110 1110 1d11 0101 dddd 1001 " opc3 "00 0000", name ".f16 s{d}, #0", kHalf,      \
        straight<compare<uint16_t, Signals, true>>, singles                            \
  }
#define NAMED_ROUND(rm, name, Mode)                                                        \
  {"1111 1110 1d11 10" rm " dddd 1010 01m0 mmmm", name ".f32 s{d}, s{m}", kFloat,          \
   straight<roundToIntegral<uint32_t, By::Named, false>>, with<singles, Mode, false>},     \
      {"1111 1110 1011 10" rm " dddd 1011 0100 mmmm", name ".f64 d{d}, d{m}", kDouble,     \
       straight<roundToIntegral<uint64_t, By::Named, false>>, with<doubles, Mode, false>}, \
  {                                                                                        \
    "1111 1110 1d11 10" rm " dddd 1001 01m0 mmmm", name ".f16 s{d}, s{m}", kHalf,          \
        straight<roundToIntegral<uint16_t, By::Named, false>>, with<singles, Mode, false>  \
  }
// Integers are in single registers in all formats.
#define TO_INTEGER(top, opc2, b7, name, type, How, Mode, Signed)                                     \
  {top " 1110 1d11 " opc2 " dddd 1010 " b7 "1m0 mmmm", name "." type ".f32 s{d}, s{m}", kFloat,      \
   straight<toInteger<uint32_t, How>>, with<singles, Mode, Signed>},                                 \
      {top " 1110 1d11 " opc2 " dddd 1011 " b7 "100 mmmm", name "." type ".f64 s{d}, d{m}", kDouble, \
       straight<toInteger<uint64_t, How>>, with<singleD, Mode, Signed>},                             \
  {                                                                                                  \
    top " 1110 1d11 " opc2 " dddd 1001 " b7 "1m0 mmmm", name "." type ".f16 s{d}, s{m}", kHalf,      \
        straight<toInteger<uint16_t, How>>, with<singles, Mode, Signed>                              \
  }
#define NAMED_TO_INTEGER(rm, name, Mode)                                 \
  TO_INTEGER("1111", "11" rm, "0", name, "u32", By::Named, Mode, false), \
      TO_INTEGER("1111", "11" rm, "1", name, "s32", By::Named, Mode, true)
#define FROM_INTEGER(b7, type, Signed)                                                          \
  {"1110 1110 1d11 1000 dddd 1010 " b7 "1m0 mmmm", "vcvt.f32." type " s{d}, s{m}", kFloat,      \
   straight<fromInteger<uint32_t>>, with<singles, 0, Signed>},                                  \
      {"1110 1110 1011 1000 dddd 1011 " b7 "1m0 mmmm", "vcvt.f64." type " d{d}, s{m}", kDouble, \
       straight<fromInteger<uint64_t>>, with<singleM, 0, Signed>},                              \
  {                                                                                             \
    "1110 1110 1d11 1000 dddd 1001 " b7 "1m0 mmmm", "vcvt.f16." type " s{d}, s{m}", kHalf,      \
        straight<fromInteger<uint16_t>>, with<singles, 0, Signed>                               \
  }
// In place. Bit 16: unsigned; bit 7: 32 bits wide.
#define FIXED(opc2, b7, type, Width, Unsigned)                                                               \
  {"1110 1110 1d11 111" opc2 " dddd 1010 " b7 "1x0 aaaa", "vcvt." type ".f32 s{d}, s{d}, #{a}", kFloat,      \
   straight<toFixed<uint32_t>>, fixedPoint<Width, Unsigned, true>},                                          \
      {"1110 1110 1d11 101" opc2 " dddd 1010 " b7 "1x0 aaaa", "vcvt.f32." type " s{d}, s{d}, #{a}", kFloat,  \
       straight<fromFixed<uint32_t>>, fixedPoint<Width, Unsigned, true>},                                    \
      {"1110 1110 1011 111" opc2 " dddd 1011 " b7 "1x0 aaaa", "vcvt." type ".f64 d{d}, d{d}, #{a}", kDouble, \
       straight<toFixed<uint64_t>>, fixedPoint<Width, Unsigned, false>},                                     \
      {"1110 1110 1011 101" opc2 " dddd 1011 " b7 "1x0 aaaa", "vcvt.f64." type " d{d}, d{d}, #{a}", kDouble, \
       straight<fromFixed<uint64_t>>, fixedPoint<Width, Unsigned, false>},                                   \
      {"1110 1110 1d11 111" opc2 " dddd 1001 " b7 "1x0 aaaa", "vcvt." type ".f16 s{d}, s{d}, #{a}", kHalf,   \
       straight<toFixed<uint16_t>>, fixedPoint<Width, Unsigned, true>},                                      \
  {                                                                                                          \
    "1110 1110 1d11 101" opc2 " dddd 1001 " b7 "1x0 aaaa", "vcvt.f16." type " s{d}, s{d}, #{a}", kHalf,      \
        straight<fromFixed<uint16_t>>, fixedPoint<Width, Unsigned, true>                                     \
  }
// x: the upper half.
#define HALVES(b7, letter, half)                                                                     \
  {"1110 1110 1d11 0010 dddd 1010 " b7 "1m0 mmmm", "vcvt" letter ".f32.f16 s{d}, s{m}", kFloat,      \
   straight<fromHalf<uint32_t>>, with<singles, 0, half>},                                            \
      {"1110 1110 1d11 0011 dddd 1010 " b7 "1m0 mmmm", "vcvt" letter ".f16.f32 s{d}, s{m}", kFloat,  \
       straight<toHalf<uint32_t>>, with<singles, 0, half>},                                          \
      {"1110 1110 1011 0010 dddd 1011 " b7 "1m0 mmmm", "vcvt" letter ".f64.f16 d{d}, s{m}", kDouble, \
       straight<fromHalf<uint64_t>>, with<singleM, 0, half>},                                        \
  {                                                                                                  \
    "1110 1110 1d11 0011 dddd 1011 " b7 "100 mmmm", "vcvt" letter ".f16.f64 s{d}, d{m}", kDouble,    \
        straight<toHalf<uint64_t>>, with<singleD, 0, half>                                           \
  }

#define ADD(T) binary<T, fpAdd<T>>
#define SUB(T) binary<T, fpSub<T>>
#define MUL(T) binary<T, fpMul<T>>
#define NMUL(T) binary<T, negatedProduct<T>>
#define DIV(T) binary<T, fpDiv<T>>
#define MAXNM(T) binary<T, fpMaxNum<T>>
#define MINNM(T) binary<T, fpMinNum<T>>
#define MLA(T) multiplyAdd<T, false, false, Fused::No>
#define MLS(T) multiplyAdd<T, false, true, Fused::No>
#define NMLS(T) multiplyAdd<T, true, false, Fused::No>
#define NMLA(T) multiplyAdd<T, true, true, Fused::No>
#define FMA(T) multiplyAdd<T, false, false, Fused::Yes>
#define FMS(T) multiplyAdd<T, false, true, Fused::Yes>
#define FNMS(T) multiplyAdd<T, true, false, Fused::Yes>
#define FNMA(T) multiplyAdd<T, true, true, Fused::Yes>
#define ABS(T) absolute<T>
#define NEG(T) negate<T>
#define SQRT(T) squareRoot<T>
#define CMP(T) compare<T, false, false>
#define CMPE(T) compare<T, true, false>
#define RINTR(T) roundToIntegral<T, By::Fpscr, false>
#define RINTZ(T) roundToIntegral<T, By::Zero, false>
#define RINTX(T) roundToIntegral<T, By::Fpscr, true>

const Encoding kDataProcessingRows[] = {
    THREE("0", "00", "0", "vmla", MLA),
    THREE("0", "00", "1", "vmls", MLS),
    THREE("0", "01", "0", "vnmls", NMLS),
    THREE("0", "01", "1", "vnmla", NMLA),
    THREE("0", "10", "0", "vmul", MUL),
    THREE("0", "10", "1", "vnmul", NMUL),
    THREE("0", "11", "0", "vadd", ADD),
    THREE("0", "11", "1", "vsub", SUB),
    THREE("1", "00", "0", "vdiv", DIV),
    THREE("1", "01", "0", "vfnms", FNMS),
    THREE("1", "01", "1", "vfnma", FNMA),
    THREE("1", "10", "0", "vfma", FMA),
    THREE("1", "10", "1", "vfms", FMS),
    THREE_AT("1111", "1", "00", "0", "vmaxnm", MAXNM),
    THREE_AT("1111", "1", "00", "1", "vminnm", MINNM),
    SELECT_ROWS("00", "vseleq", 0),
    SELECT_ROWS("01", "vselvs", 1),
    SELECT_ROWS("10", "vselge", 2),
    SELECT_ROWS("11", "vselgt", 3),

    {"1110 1110 1d11 iiii dddd 1010 0000 iiii", "vmov.f32 s{d}, #{i}", kFloat,
     straight<moveImmediate<uint32_t>>, immediateSingle},
    {"1110 1110 1011 iiii dddd 1011 0000 iiii", "vmov.f64 d{d}, #{i}", kDouble,
     straight<moveImmediate<uint64_t>>, immediateDouble},
    {"1110 1110 1d11 iiii dddd 1001 0000 iiii", "vmov.f16 s{d}, #{i}", kHalf,
     straight<moveImmediate<uint16_t>>, immediateHalf},
    {"1110 1110 1d11 0000 dddd 1010 01m0 mmmm", "vmov.f32 s{d}, s{m}", kFloat, straight<move<uint32_t>>,
     singles},
    // Also on cores with single precision only.
    {"1110 1110 1011 0000 dddd 1011 0100 mmmm", "vmov.f64 d{d}, d{m}", kFloat, straight<move<uint64_t>>},
    {"1111 1110 1d11 0000 dddd 1010 11m0 mmmm", "vins.f16 s{d}, s{m}", kHalf, straight<insertHalf>, singles},
    {"1111 1110 1d11 0000 dddd 1010 01m0 mmmm", "vmovx.f16 s{d}, s{m}", kHalf, straight<extractHalf>,
     singles},

    TWO("0000", "11", "vabs", ABS),
    TWO("0001", "01", "vneg", NEG),
    TWO("0001", "11", "vsqrt", SQRT),
    TWO("0100", "01", "vcmp", CMP),
    TWO("0100", "11", "vcmpe", CMPE),
    COMPARE_ZERO("01", "vcmp", false),
    COMPARE_ZERO("11", "vcmpe", true),
    TWO("0110", "01", "vrintr", RINTR),
    TWO("0110", "11", "vrintz", RINTZ),
    TWO("0111", "01", "vrintx", RINTX),
    NAMED_ROUND("00", "vrinta", 0),
    NAMED_ROUND("01", "vrintn", 1),
    NAMED_ROUND("10", "vrintp", 2),
    NAMED_ROUND("11", "vrintm", 3),

    {"1110 1110 1011 0111 dddd 1010 11m0 mmmm", "vcvt.f64.f32 d{d}, s{m}", kDouble, straight<singleToDouble>,
     singleM},
    {"1110 1110 1d11 0111 dddd 1011 1100 mmmm", "vcvt.f32.f64 s{d}, d{m}", kDouble, straight<doubleToSingle>,
     singleD},
    HALVES("0", "b", 0),
    HALVES("1", "t", 1),
    FROM_INTEGER("0", "u32", false),
    FROM_INTEGER("1", "s32", true),
    TO_INTEGER("1110", "1100", "0", "vcvtr", "u32", By::Fpscr, 0, false),
    TO_INTEGER("1110", "1100", "1", "vcvt", "u32", By::Zero, 0, false),
    TO_INTEGER("1110", "1101", "0", "vcvtr", "s32", By::Fpscr, 0, true),
    TO_INTEGER("1110", "1101", "1", "vcvt", "s32", By::Zero, 0, true),
    NAMED_TO_INTEGER("00", "vcvta", 0),
    NAMED_TO_INTEGER("01", "vcvtn", 1),
    NAMED_TO_INTEGER("10", "vcvtp", 2),
    NAMED_TO_INTEGER("11", "vcvtm", 3),
    FIXED("0", "0", "s16", 16, false),
    FIXED("0", "1", "s32", 32, false),
    FIXED("1", "0", "u16", 16, true),
    FIXED("1", "1", "u32", 32, true),
};

}  // namespace
}  // namespace fp

std::span<const Encoding> floatingPointEncodings() {
  return fp::kDataProcessingRows;
}

}  // namespace carina::cpu_m
