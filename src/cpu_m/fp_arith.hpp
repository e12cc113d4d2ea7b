// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic on bit patterns, controlled by FPSCR of Armv8-M: rounding modes, flushing of
// denormals, default NaNs, propagation of NaNs and cumulative exception flags. Half, single and double
// precision are uint16_t, uint32_t and uint64_t. Source: the FP pseudocode functions of the Armv8-M
// Architecture Reference Manual (FPAdd, FPRound, ...).
//
// Tininess is detected before rounding. The host's floating-point unit is used where its result and flags are
// known to be the same; its rounding mode must be round to nearest.
#pragma once

#include <bit>
#include <cstdint>

namespace carina::cpu_m {

/// Values 0-3 are FPSCR.RMode.
enum class Rounding : std::uint8_t { NearestEven, PlusInfinity, MinusInfinity, Zero, NearestAway };

/// Cumulative exception bits at their positions in FPSCR.
namespace fp_flag {
inline constexpr std::uint32_t kInvalid = 1u << 0;
inline constexpr std::uint32_t kDivideByZero = 1u << 1;
inline constexpr std::uint32_t kOverflow = 1u << 2;
inline constexpr std::uint32_t kUnderflow = 1u << 3;
inline constexpr std::uint32_t kInexact = 1u << 4;
inline constexpr std::uint32_t kInputDenormal = 1u << 7;
inline constexpr std::uint32_t kAll = 0x9f;
}  // namespace fp_flag

/// The modes of one operation, and the flags it adds to. The flags start as those of FPSCR: inexact results
/// need not be detected if IXC is already set.
struct FpContext {
  Rounding rounding = Rounding::NearestEven;
  bool flush = false;             // FZ: single and double
  bool flush_half = false;        // FZ16
  bool default_nan = false;       // DN
  bool alternative_half = false;  // AHP: conversions from and to half only
  std::uint32_t flags = 0;

  /// For scalar instructions.
  static FpContext scalar(std::uint32_t fpscr);
  /// StandardFPSCRValue(), for vector instructions. Only FZ16 and AHP of `fpscr` matter.
  static FpContext standard(std::uint32_t fpscr);
};

/// Fields of the IEEE format stored in Bits.
template <class Bits>
struct FpFormat;

template <>
struct FpFormat<std::uint16_t> {
  static constexpr int kFractionBits = 10, kExponentBits = 5;
};
template <>
struct FpFormat<std::uint32_t> {
  static constexpr int kFractionBits = 23, kExponentBits = 8;
};
template <>
struct FpFormat<std::uint64_t> {
  static constexpr int kFractionBits = 52, kExponentBits = 11;
};

template <class Bits>
struct FpLayout : FpFormat<Bits> {
  using FpFormat<Bits>::kFractionBits;
  using FpFormat<Bits>::kExponentBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kMinExponent = 1 - kBias;
  static constexpr int kMaxExponent = kBias;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (kFractionBits + kExponentBits));
  static constexpr Bits kInfinity = static_cast<Bits>(((Bits{1} << kExponentBits) - 1) << kFractionBits);
  static constexpr Bits kQuiet = static_cast<Bits>(Bits{1} << (kFractionBits - 1));
  static constexpr Bits kDefaultNan = static_cast<Bits>(kInfinity | kQuiet);
  static constexpr Bits kMinNormal = static_cast<Bits>(Bits{1} << kFractionBits);
};

template <class Bits>
constexpr Bits fpNeg(Bits a) {
  return static_cast<Bits>(a ^ FpLayout<Bits>::kSign);
}
template <class Bits>
constexpr Bits fpAbs(Bits a) {
  return static_cast<Bits>(a & ~FpLayout<Bits>::kSign);
}
template <class Bits>
constexpr bool fpIsNan(Bits a) {
  return fpAbs(a) > FpLayout<Bits>::kInfinity;
}
template <class Bits>
constexpr bool fpIsSignallingNan(Bits a) {
  return fpIsNan(a) && !(a & FpLayout<Bits>::kQuiet);
}

template <class Bits>
Bits fpAdd(Bits a, Bits b, FpContext& context);
template <class Bits>
Bits fpSub(Bits a, Bits b, FpContext& context);
template <class Bits>
Bits fpMul(Bits a, Bits b, FpContext& context);
template <class Bits>
Bits fpDiv(Bits a, Bits b, FpContext& context);
template <class Bits>
Bits fpSqrt(Bits a, FpContext& context);
/// addend + a * b, rounded once.
template <class Bits>
Bits fpMulAdd(Bits addend, Bits a, Bits b, FpContext& context);
/// maxNum and minNum of IEEE 754-2008: a number takes precedence over a quiet NaN.
template <class Bits>
Bits fpMaxNum(Bits a, Bits b, FpContext& context);
template <class Bits>
Bits fpMinNum(Bits a, Bits b, FpContext& context);

/// N:Z:C:V in bits 3-0: less 1000, equal 0110, greater 0010, unordered 0011. Quiet NaNs raise Invalid only
/// with `signal_quiet`.
template <class Bits>
unsigned fpCompare(Bits a, Bits b, bool signal_quiet, FpContext& context);

/// To an integral value in the same format; `exact`: raise Inexact if the value changes.
template <class Bits>
Bits fpRoundToIntegral(Bits a, Rounding rounding, bool exact, FpContext& context);

/// a * 2^fraction_bits as an integer of `width` bits (16, 32, 64), saturating; NaN is 0. Sign-extended to 64
/// bits.
template <class Bits>
std::uint64_t fpToFixed(Bits a, int fraction_bits, int width, bool is_unsigned, Rounding rounding,
                        FpContext& context);

/// value / 2^fraction_bits; `value` is zero- or sign-extended to 64 bits.
template <class Bits>
Bits fpFromFixed(std::uint64_t value, int fraction_bits, bool is_unsigned, Rounding rounding,
                 FpContext& context);

/// Between formats, honouring alternative_half; half denormals are never flushed.
template <class To, class From>
To fpConvert(From a, FpContext& context);

}  // namespace carina::cpu_m
