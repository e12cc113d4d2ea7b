// SPDX-License-Identifier: Apache-2.0
#include "cpu_m/fp_arith.hpp"

#include <cmath>
#include <type_traits>

#include "cpu_m/fp_fast.hpp"

namespace carina::cpu_m {
namespace {

__extension__ typedef unsigned __int128 Wide;

enum class Kind : std::uint8_t { Zero, Finite, Infinity, QuietNan, SignallingNan };

/// A finite value is (-1)^sign * significand * 2^(exponent - 63), bit 63 of the significand set.
struct Unpacked {
  Kind kind = Kind::Zero;
  bool sign = false;
  int exponent = 0;
  std::uint64_t significand = 0;

  bool nan() const { return kind >= Kind::QuietNan; }
  bool infinite() const { return kind == Kind::Infinity; }
  bool zero() const { return kind == Kind::Zero; }
};

template <class Bits>
bool flushes(const FpContext& context) {
  return sizeof(Bits) == 2 ? context.flush_half : context.flush;
}

/// `conversion`: half denormals are not flushed and the alternative format is honoured (FPUnpackCV).
template <class Bits>
Unpacked unpack(Bits bits, FpContext& context, bool conversion = false) {
  using L = FpLayout<Bits>;
  Unpacked u;
  u.sign = (bits & L::kSign) != 0;
  const int field = (bits & L::kInfinity) >> L::kFractionBits;
  const std::uint64_t fraction = bits & (L::kMinNormal - 1);
  const bool alternative = sizeof(Bits) == 2 && conversion && context.alternative_half;
  if (field == 0) {
    if (fraction == 0) return u;
    if (flushes<Bits>(context) && !(sizeof(Bits) == 2 && conversion)) {
      if constexpr (sizeof(Bits) != 2) context.flags |= fp_flag::kInputDenormal;
      return u;
    }
    const int shift = std::countl_zero(fraction);
    u.kind = Kind::Finite;
    u.significand = fraction << shift;
    u.exponent = L::kMinExponent - L::kFractionBits + 63 - shift;
    return u;
  }
  if (field == (1 << L::kExponentBits) - 1 && !alternative) {
    u.kind = fraction == 0 ? Kind::Infinity : (bits & L::kQuiet) ? Kind::QuietNan : Kind::SignallingNan;
    return u;
  }
  u.kind = Kind::Finite;
  u.significand = (fraction | L::kMinNormal) << (63 - L::kFractionBits);
  u.exponent = field - L::kBias;
  return u;
}

template <class Bits>
Bits zero(bool sign) {
  return sign ? FpLayout<Bits>::kSign : Bits{0};
}
template <class Bits>
Bits infinity(bool sign) {
  return static_cast<Bits>(zero<Bits>(sign) | FpLayout<Bits>::kInfinity);
}
template <class Bits>
Bits invalid(FpContext& context) {
  context.flags |= fp_flag::kInvalid;
  return FpLayout<Bits>::kDefaultNan;
}

/// Whether to round away from zero. `rest`: the discarded part of the significand as a fraction of 2^64.
bool roundsUp(Rounding rounding, bool sign, bool odd, std::uint64_t rest, bool sticky) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  switch (rounding) {
    case Rounding::NearestEven:
      return rest > kHalf || (rest == kHalf && (sticky || odd));
    case Rounding::NearestAway:
      return rest >= kHalf;
    case Rounding::PlusInfinity:
      return !sign && (rest != 0 || sticky);
    case Rounding::MinusInfinity:
      return sign && (rest != 0 || sticky);
    case Rounding::Zero:
      return false;
  }
  return false;
}

/// FPRound of significand * 2^(exponent - 63), with nonzero bits below it if `sticky`. Bit 63 of the
/// significand is set.
template <class Bits>
Bits roundTo(bool sign, int exponent, std::uint64_t significand, bool sticky, Rounding rounding,
             FpContext& context, bool conversion = false) {
  using L = FpLayout<Bits>;
  const bool half = sizeof(Bits) == 2;
  const bool alternative = half && conversion && context.alternative_half;
  const bool tiny = exponent < L::kMinExponent;
  if (tiny && flushes<Bits>(context) && !(half && conversion)) {
    context.flags |= fp_flag::kUnderflow;
    return zero<Bits>(sign);
  }
  const int drop = 63 - L::kFractionBits + (tiny ? L::kMinExponent - exponent : 0);
  std::uint64_t kept = 0, rest = 0;
  if (drop < 64) {
    kept = significand >> drop;
    rest = significand << (64 - drop);
  } else if (drop == 64) {
    rest = significand;
  } else {
    sticky = true;
  }
  bool inexact = rest != 0 || sticky;
  if (tiny && inexact) context.flags |= fp_flag::kUnderflow;
  kept += roundsUp(rounding, sign, kept & 1, rest, sticky);

  const int largest = alternative ? L::kMaxExponent + 1 : L::kMaxExponent;
  const bool carried = (kept >> (L::kFractionBits + 1)) != 0;
  if (exponent + carried > largest) {
    if (alternative) {
      context.flags |= fp_flag::kInvalid;
      return static_cast<Bits>(zero<Bits>(sign) | static_cast<Bits>(~L::kSign));
    }
    context.flags |= fp_flag::kOverflow | fp_flag::kInexact;
    const bool to_infinity = rounding == Rounding::NearestEven || rounding == Rounding::NearestAway ||
                             rounding == (sign ? Rounding::MinusInfinity : Rounding::PlusInfinity);
    return to_infinity ? infinity<Bits>(sign) : static_cast<Bits>(infinity<Bits>(sign) - 1);
  }
  if (inexact) context.flags |= fp_flag::kInexact;
  // The leading one of `kept` adds 1 to the exponent field; a carry adds 1 more.
  const auto field = static_cast<std::uint64_t>(tiny ? 0 : exponent - L::kMinExponent);
  return static_cast<Bits>(zero<Bits>(sign) | static_cast<Bits>((field << L::kFractionBits) + kept));
}

/// The same from 128 bits: `significand` is not 0, its bit 127 has weight 2^exponent.
template <class Bits>
Bits roundWide(bool sign, int exponent, Wide significand, FpContext& context) {
  const auto high = static_cast<std::uint64_t>(significand >> 64);
  const int shift =
      high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<std::uint64_t>(significand));
  significand <<= shift;
  return roundTo<Bits>(sign, exponent - shift, static_cast<std::uint64_t>(significand >> 64),
                       static_cast<std::uint64_t>(significand) != 0, context.rounding, context);
}

template <class Bits>
Bits propagate(Bits nan, FpContext& context) {
  if (fpIsSignallingNan(nan)) context.flags |= fp_flag::kInvalid;
  return context.default_nan ? FpLayout<Bits>::kDefaultNan : static_cast<Bits>(nan | FpLayout<Bits>::kQuiet);
}

/// FPProcessNaNs: signalling NaNs first, then quiet ones, each in order. At least one operand is a NaN.
template <class Bits>
Bits propagate(Bits a, Bits b, FpContext& context) {
  if (fpIsSignallingNan(a)) return propagate(a, context);
  if (fpIsSignallingNan(b)) return propagate(b, context);
  return propagate(fpIsNan(a) ? a : b, context);
}

Wide shiftRightSticky(Wide value, int shift) {
  if (shift == 0) return value;
  if (shift > 127) return value != 0;
  return (value >> shift) | ((value << (128 - shift)) != 0);
}

/// a + b with significands whose bit 126 has weight 2^exponent (bit 126 set, or all 0).
template <class Bits>
Bits addWide(bool sign_a, int exponent_a, Wide a, bool sign_b, int exponent_b, Wide b, FpContext& context) {
  if (b != 0 && (a == 0 || exponent_a < exponent_b)) {
    std::swap(sign_a, sign_b);
    std::swap(exponent_a, exponent_b);
    std::swap(a, b);
  }
  if (b != 0) {
    b = shiftRightSticky(b, exponent_a - exponent_b);
    if (sign_a == sign_b) {
      a += b;
    } else if (a >= b) {
      a -= b;
    } else {
      a = b - a;
      sign_a = sign_b;
    }
  }
  if (a == 0) return zero<Bits>(context.rounding == Rounding::MinusInfinity);
  return roundWide<Bits>(sign_a, exponent_a + 1, a, context);
}

template <class Bits>
Bits addSoft(Bits a, Bits b, bool subtract, FpContext& context) {
  const Unpacked x = unpack(a, context);
  Unpacked y = unpack(b, context);
  if (x.nan() || y.nan()) return propagate(a, b, context);
  y.sign ^= subtract;
  if (x.infinite() || y.infinite()) {
    if (x.infinite() && y.infinite() && x.sign != y.sign) return invalid<Bits>(context);
    return infinity<Bits>(x.infinite() ? x.sign : y.sign);
  }
  if (x.zero() && y.zero()) {
    return zero<Bits>(x.sign == y.sign ? x.sign : context.rounding == Rounding::MinusInfinity);
  }
  return addWide<Bits>(x.sign, x.exponent, Wide{x.significand} << 63, y.sign, y.exponent,
                       Wide{y.significand} << 63, context);
}

template <class Bits>
Bits mulSoft(Bits a, Bits b, FpContext& context) {
  const Unpacked x = unpack(a, context), y = unpack(b, context);
  if (x.nan() || y.nan()) return propagate(a, b, context);
  const bool sign = x.sign != y.sign;
  if (x.infinite() || y.infinite()) {
    return x.zero() || y.zero() ? invalid<Bits>(context) : infinity<Bits>(sign);
  }
  if (x.zero() || y.zero()) return zero<Bits>(sign);
  return roundWide<Bits>(sign, x.exponent + y.exponent + 1, Wide{x.significand} * y.significand, context);
}

template <class Bits>
Bits mulAddSoft(Bits addend, Bits a, Bits b, FpContext& context) {
  const Unpacked c = unpack(addend, context), x = unpack(a, context), y = unpack(b, context);
  const bool undefined = (x.infinite() && y.zero()) || (x.zero() && y.infinite());
  if (c.nan() || x.nan() || y.nan()) {
    if (c.kind == Kind::QuietNan && undefined) return invalid<Bits>(context);
    if (c.kind == Kind::SignallingNan) return propagate(addend, context);
    if (x.kind == Kind::SignallingNan || y.kind == Kind::SignallingNan) return propagate(a, b, context);
    return c.nan() ? propagate(addend, context) : propagate(a, b, context);
  }
  const bool sign = x.sign != y.sign;
  const bool infinite = x.infinite() || y.infinite();
  if (undefined || (c.infinite() && infinite && c.sign != sign)) return invalid<Bits>(context);
  if (c.infinite() || infinite) return infinity<Bits>(infinite ? sign : c.sign);
  const bool no_product = x.zero() || y.zero();
  if (c.zero() && no_product) {
    return zero<Bits>(c.sign == sign ? sign : context.rounding == Rounding::MinusInfinity);
  }
  Wide product = 0;
  int exponent = 0;
  if (!no_product) {
    product = Wide{x.significand} * y.significand;
    exponent = x.exponent + y.exponent;
    if (product >> 127) {
      product >>= 1;  // exact: significands end in zeros
      ++exponent;
    }
  }
  return addWide<Bits>(sign, exponent, product, c.sign, c.exponent, Wide{c.significand} << 63, context);
}

// --- The host's unit, where its results are the same

template <class Bits>
using Host = std::conditional_t<sizeof(Bits) == 4, float, double>;

using fp_fast::normalOrZero;
using fp_fast::safe;

/// Calls `fast` (a function of fp_fast) if it can be used; true if it produced the result.
template <class Bits, class Fast>
bool onHost(FpContext& context, Bits& result, Fast fast) {
  if (context.rounding != Rounding::NearestEven) return false;
  int inexact = 0;
  if (!fast(result, inexact)) return false;
  if (inexact != 0) context.flags |= fp_flag::kInexact;
  return true;
}

template <class Bits>
Bits addOrSub(Bits a, Bits b, bool subtract, FpContext& context) {
  Bits result;
  const Bits other = subtract ? fpNeg(b) : b;
  if (onHost(context, result, [=](Bits& r, int& inexact) { return fp_fast::add(a, other, r, inexact); }))
    return result;
  return addSoft(a, b, subtract, context);
}

template <class Bits>
Bits maxOrMin(Bits a, Bits b, bool maximum, FpContext& context) {
  const Unpacked x = unpack(a, context), y = unpack(b, context);
  if (x.nan() || y.nan()) {
    const bool only_one_quiet = (x.kind == Kind::QuietNan) != (y.kind == Kind::QuietNan);
    if (only_one_quiet && !(x.nan() && y.nan())) {
      if (x.nan()) return y.zero() ? zero<Bits>(y.sign) : b;
      return x.zero() ? zero<Bits>(x.sign) : a;
    }
    return propagate(a, b, context);
  }
  if (x.zero()) a = zero<Bits>(x.sign);  // may have been flushed
  if (y.zero()) b = zero<Bits>(y.sign);
  // Order of signed magnitudes; -0 < +0.
  const auto key = [](Bits bits) {
    const auto value = static_cast<std::int64_t>(fpAbs(bits));
    return (bits & FpLayout<Bits>::kSign) ? -value - 1 : value;
  };
  return (key(a) > key(b)) == maximum ? a : b;
}

}  // namespace

FpContext FpContext::scalar(std::uint32_t fpscr) {
  FpContext c;
  c.rounding = static_cast<Rounding>((fpscr >> 22) & 3);
  c.flush = (fpscr >> 24) & 1;
  c.flush_half = (fpscr >> 19) & 1;
  c.default_nan = (fpscr >> 25) & 1;
  c.alternative_half = (fpscr >> 26) & 1;
  c.flags = fpscr & fp_flag::kAll;
  return c;
}

FpContext FpContext::standard(std::uint32_t fpscr) {
  FpContext c;
  c.flush = true;
  c.default_nan = true;
  c.flush_half = (fpscr >> 19) & 1;
  c.alternative_half = (fpscr >> 26) & 1;
  c.flags = fpscr & fp_flag::kAll;
  return c;
}

template <class Bits>
Bits fpAdd(Bits a, Bits b, FpContext& context) {
  return addOrSub(a, b, false, context);
}

template <class Bits>
Bits fpSub(Bits a, Bits b, FpContext& context) {
  return addOrSub(a, b, true, context);
}

template <class Bits>
Bits fpMul(Bits a, Bits b, FpContext& context) {
  if constexpr (sizeof(Bits) != 8) {
    Bits result;
    if (onHost(context, result, [=](Bits& r, int& inexact) { return fp_fast::mul(a, b, r, inexact); }))
      return result;
  } else if (context.rounding == Rounding::NearestEven && (context.flags & fp_flag::kInexact) != 0) {
    const Bits result = std::bit_cast<Bits>(std::bit_cast<double>(a) * std::bit_cast<double>(b));
    if (normalOrZero(a) && normalOrZero(b) && safe(result)) return result;
  }
  return mulSoft(a, b, context);
}

template <class Bits>
Bits fpDiv(Bits a, Bits b, FpContext& context) {
  if constexpr (sizeof(Bits) == 4) {
    if (context.rounding == Rounding::NearestEven && normalOrZero(a) && normalOrZero(b) && fpAbs(a) != 0 &&
        fpAbs(b) != 0) {
      const auto x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
      const float quotient = x / y;
      const Bits result = std::bit_cast<Bits>(quotient);
      if (safe(result)) {
        if (static_cast<double>(quotient) * y != x) context.flags |= fp_flag::kInexact;
        return result;
      }
    }
  }
  const Unpacked x = unpack(a, context), y = unpack(b, context);
  if (x.nan() || y.nan()) return propagate(a, b, context);
  const bool sign = x.sign != y.sign;
  if ((x.infinite() && y.infinite()) || (x.zero() && y.zero())) return invalid<Bits>(context);
  if (x.infinite() || y.zero()) {
    if (!x.infinite()) context.flags |= fp_flag::kDivideByZero;
    return infinity<Bits>(sign);
  }
  if (x.zero() || y.infinite()) return zero<Bits>(sign);
  const Wide dividend = Wide{x.significand} << 63;
  const Wide quotient = dividend / y.significand;  // 2^62 < quotient < 2^64
  const bool sticky = dividend % y.significand != 0;
  return roundWide<Bits>(sign, x.exponent - y.exponent + 1, (quotient << 63) | sticky, context);
}

template <class Bits>
Bits fpSqrt(Bits a, FpContext& context) {
  if constexpr (sizeof(Bits) != 2) {
    if (context.rounding == Rounding::NearestEven && normalOrZero(a) && !(a & FpLayout<Bits>::kSign)) {
      const auto root = std::sqrt(std::bit_cast<Host<Bits>>(a));
      const Bits result = std::bit_cast<Bits>(root);
      if (a == 0) return result;
      if constexpr (sizeof(Bits) == 4) {
        if (static_cast<double>(root) * root != std::bit_cast<float>(a)) context.flags |= fp_flag::kInexact;
        return result;
      } else if (context.flags & fp_flag::kInexact) {
        return result;
      }
    }
  }
  const Unpacked x = unpack(a, context);
  if (x.nan()) return propagate(a, context);
  if (x.zero()) return zero<Bits>(x.sign);
  if (x.sign) return invalid<Bits>(context);
  if (x.infinite()) return infinity<Bits>(false);
  // value = radicand * 2^(exponent - 126) with an even exponent; the root has bit 63 set.
  const bool odd = x.exponent & 1;
  const Wide radicand = Wide{x.significand} << (odd ? 64 : 63);
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 63; bit != 0; bit >>= 1) {
    const std::uint64_t trial = root | bit;
    if (Wide{trial} * trial <= radicand) root = trial;
  }
  const bool sticky = Wide{root} * root != radicand;
  return roundTo<Bits>(false, (x.exponent - odd) / 2, root, sticky, context.rounding, context);
}

template <class Bits>
Bits fpMulAdd(Bits addend, Bits a, Bits b, FpContext& context) {
  if constexpr (sizeof(Bits) != 8) {
    Bits result;
    if (onHost(context, result,
               [=](Bits& r, int& inexact) { return fp_fast::mulAdd(addend, a, b, r, inexact); })) {
      return result;
    }
  }
  return mulAddSoft(addend, a, b, context);
}

template <class Bits>
Bits fpMaxNum(Bits a, Bits b, FpContext& context) {
  return maxOrMin(a, b, true, context);
}

template <class Bits>
Bits fpMinNum(Bits a, Bits b, FpContext& context) {
  return maxOrMin(a, b, false, context);
}

template <class Bits>
unsigned fpCompare(Bits a, Bits b, bool signal_quiet, FpContext& context) {
  const Unpacked x = unpack(a, context), y = unpack(b, context);
  if (x.nan() || y.nan()) {
    if (signal_quiet || x.kind == Kind::SignallingNan || y.kind == Kind::SignallingNan) {
      context.flags |= fp_flag::kInvalid;
    }
    return 0b0011;
  }
  const auto key = [](const Unpacked& u, Bits bits) -> std::int64_t {
    if (u.zero()) return 0;
    const auto value = static_cast<std::int64_t>(fpAbs(bits));
    return u.sign ? -value : value;
  };
  const std::int64_t left = key(x, a), right = key(y, b);
  return left == right ? 0b0110 : left < right ? 0b1000 : 0b0010;
}

template <class Bits>
Bits fpRoundToIntegral(Bits a, Rounding rounding, bool exact, FpContext& context) {
  using L = FpLayout<Bits>;
  const Unpacked x = unpack(a, context);
  if (x.nan()) return propagate(a, context);
  if (x.zero()) return zero<Bits>(x.sign);
  if (x.infinite() || x.exponent >= L::kFractionBits) return a;
  // The units digit is bit 63 - exponent of the significand.
  std::uint64_t kept = 0, rest = 0;
  bool sticky = false;
  if (x.exponent >= 0) {
    const int drop = 63 - x.exponent;
    kept = x.significand >> drop;
    rest = x.significand << (64 - drop);
  } else if (x.exponent == -1) {
    rest = x.significand;
  } else {
    sticky = true;
  }
  if (exact && (rest != 0 || sticky)) context.flags |= fp_flag::kInexact;
  kept += roundsUp(rounding, x.sign, kept & 1, rest, sticky);
  if (kept == 0) return zero<Bits>(x.sign);
  const int shift = std::countl_zero(kept);
  FpContext ignored;
  return roundTo<Bits>(x.sign, 63 - shift, kept << shift, false, Rounding::Zero, ignored);
}

template <class Bits>
std::uint64_t fpToFixed(Bits a, int fraction_bits, int width, bool is_unsigned, Rounding rounding,
                        FpContext& context) {
  const Unpacked x = unpack(a, context);
  if (x.nan()) {
    context.flags |= fp_flag::kInvalid;
    return 0;
  }
  if (x.zero()) return 0;
  const std::uint64_t all = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  const std::uint64_t largest = is_unsigned ? all : x.sign ? (all >> 1) + 1 : all >> 1;
  const std::uint64_t limit = is_unsigned && x.sign ? 0 : largest;
  const auto signedValue = [&x](std::uint64_t magnitude) { return x.sign ? -magnitude : magnitude; };
  const int exponent = x.infinite() ? 1000 : x.exponent + fraction_bits;
  if (exponent > 63) {
    context.flags |= fp_flag::kInvalid;
    return signedValue(limit);
  }
  std::uint64_t kept = 0, rest = 0;
  bool sticky = false;
  if (exponent >= 0) {
    const int drop = 63 - exponent;
    kept = x.significand >> drop;
    rest = drop == 0 ? 0 : x.significand << (64 - drop);
  } else if (exponent == -1) {
    rest = x.significand;
  } else {
    sticky = true;
  }
  const bool up = roundsUp(rounding, x.sign, kept & 1, rest, sticky);
  if (kept > limit || (up && kept == limit)) {
    context.flags |= fp_flag::kInvalid;
    return signedValue(limit);
  }
  if (rest != 0 || sticky) context.flags |= fp_flag::kInexact;
  return signedValue(kept + up);
}

template <class Bits>
Bits fpFromFixed(std::uint64_t value, int fraction_bits, bool is_unsigned, Rounding rounding,
                 FpContext& context) {
  if (value == 0) return 0;
  const bool sign = !is_unsigned && (value >> 63) != 0;
  const std::uint64_t magnitude = sign ? -value : value;
  const int shift = std::countl_zero(magnitude);
  return roundTo<Bits>(sign, 63 - shift - fraction_bits, magnitude << shift, false, rounding, context);
}

template <class To, class From>
To fpConvert(From a, FpContext& context) {
  using F = FpLayout<From>;
  using T = FpLayout<To>;
  const Unpacked x = unpack(a, context, true);
  const bool alternative = sizeof(To) == 2 && context.alternative_half;
  if (x.nan()) {
    if (x.kind == Kind::SignallingNan || alternative) context.flags |= fp_flag::kInvalid;
    if (alternative) return zero<To>(x.sign);
    if (context.default_nan) return T::kDefaultNan;
    // The upper bits of the fraction are kept.
    const std::uint64_t fraction = static_cast<std::uint64_t>(a & (F::kMinNormal - 1))
                                   << (63 - F::kFractionBits);
    return static_cast<To>(infinity<To>(x.sign) | T::kQuiet |
                           static_cast<To>(fraction >> (63 - T::kFractionBits)));
  }
  if (x.infinite()) {
    if (!alternative) return infinity<To>(x.sign);
    context.flags |= fp_flag::kInvalid;
    return static_cast<To>(zero<To>(x.sign) | static_cast<To>(~T::kSign));
  }
  if (x.zero()) return zero<To>(x.sign);
  return roundTo<To>(x.sign, x.exponent, x.significand, false, context.rounding, context, true);
}

#define CARINA_FP_FORMAT(Bits)                                                  \
  template Bits fpAdd(Bits, Bits, FpContext&);                                  \
  template Bits fpSub(Bits, Bits, FpContext&);                                  \
  template Bits fpMul(Bits, Bits, FpContext&);                                  \
  template Bits fpDiv(Bits, Bits, FpContext&);                                  \
  template Bits fpSqrt(Bits, FpContext&);                                       \
  template Bits fpMulAdd(Bits, Bits, Bits, FpContext&);                         \
  template Bits fpMaxNum(Bits, Bits, FpContext&);                               \
  template Bits fpMinNum(Bits, Bits, FpContext&);                               \
  template unsigned fpCompare(Bits, Bits, bool, FpContext&);                    \
  template Bits fpRoundToIntegral(Bits, Rounding, bool, FpContext&);            \
  template std::uint64_t fpToFixed(Bits, int, int, bool, Rounding, FpContext&); \
  template Bits fpFromFixed<Bits>(std::uint64_t, int, bool, Rounding, FpContext&)

CARINA_FP_FORMAT(std::uint16_t);
CARINA_FP_FORMAT(std::uint32_t);
CARINA_FP_FORMAT(std::uint64_t);
#undef CARINA_FP_FORMAT

template std::uint16_t fpConvert(std::uint32_t, FpContext&);
template std::uint16_t fpConvert(std::uint64_t, FpContext&);
template std::uint32_t fpConvert(std::uint16_t, FpContext&);
template std::uint32_t fpConvert(std::uint64_t, FpContext&);
template std::uint64_t fpConvert(std::uint16_t, FpContext&);
template std::uint64_t fpConvert(std::uint32_t, FpContext&);

}  // namespace carina::cpu_m
