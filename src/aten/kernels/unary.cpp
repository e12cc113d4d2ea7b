// SPDX-License-Identifier: Apache-2.0
// Pointwise mathematics of one operand: abs, exp, sin, round, isnan, ...
#include "aten/kernels/pointwise.hpp"

namespace carina::aten {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// exp(x * x) * erfc(x), also if these factors overflow or underflow: the first terms of its series in 1 / x.
double erfcx(double x) {
  if (x < 25) return std::exp(x * x) * std::erfc(x);
  const double square = 1 / (2 * x * x);
  return (1 - square * (1 - 3 * square)) / (x * std::sqrt(kPi));
}

template <typename F>
Result<Kernel> prepareNumber(const ir::Node&) {
  return numberKernel(F{});
}
template <typename F>
Result<Kernel> prepareFloat(const ir::Node&) {
  return floatKernel(F{});
}

// Defines a functor for numbers of every type.
#define CARINA_NUMBER(Name, expression) \
  struct Name {                         \
    template <typename T>               \
    auto operator()(T x) const {        \
      return expression;                \
    }                                   \
  }
/// Rounding operators do not change integers.
template <typename T, typename F>
T forFloatsOnly(T x, F f) {
  if constexpr (std::is_floating_point_v<T>) {
    return f(x);
  } else {
    return x;
  }
}
template <typename T>
T absolute(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::abs(x);
  } else {
    return x < T{0} ? wrapNeg(x) : x;
  }
}
template <typename T>
T signOf(T x) {
  return static_cast<T>((x > T{0}) - (x < T{0}));
}
/// Rounds ties to even.
template <typename T>
T roundEven(T x) {
  return std::nearbyint(x);
}

CARINA_NUMBER(AbsOf, absolute(x));
using NegOf = decltype([]<typename T>(T x) -> T {
  if constexpr (std::is_floating_point_v<T>) {
    return -x;
  } else {
    return wrapNeg(x);
  }
});
CARINA_NUMBER(SignOf, signOf(x));
CARINA_NUMBER(FloorOf, forFloatsOnly(x, [](auto v) { return std::floor(v); }));
CARINA_NUMBER(CeilOf, forFloatsOnly(x, [](auto v) { return std::ceil(v); }));
CARINA_NUMBER(TruncOf, forFloatsOnly(x, [](auto v) { return std::trunc(v); }));
CARINA_NUMBER(RoundOf, forFloatsOnly(x, [](auto v) { return roundEven(v); }));
CARINA_NUMBER(FracOf, forFloatsOnly(x, [](auto v) { return v - std::trunc(v); }));
CARINA_NUMBER(SquareOf, wrapMul(x, x));
CARINA_NUMBER(IsNanOf, isNan(x));
CARINA_NUMBER(IsInfOf, static_cast<double>(x) - static_cast<double>(x) != 0 && !isNan(x));
CARINA_NUMBER(IsFiniteOf, static_cast<double>(x) - static_cast<double>(x) == 0);
CARINA_NUMBER(IsPosInfOf, static_cast<double>(x) == std::numeric_limits<double>::infinity());
CARINA_NUMBER(IsNegInfOf, static_cast<double>(x) == -std::numeric_limits<double>::infinity());
CARINA_NUMBER(SignbitOf, std::signbit(static_cast<double>(x)));
CARINA_NUMBER(LogicalNotOf, x == T{0});

CARINA_NUMBER(ExpOf, std::exp(x));
CARINA_NUMBER(Exp2Of, std::exp2(x));
CARINA_NUMBER(Expm1Of, std::expm1(x));
CARINA_NUMBER(LogOf, std::log(x));
CARINA_NUMBER(Log2Of, std::log2(x));
CARINA_NUMBER(Log10Of, std::log10(x));
CARINA_NUMBER(Log1pOf, std::log1p(x));
CARINA_NUMBER(SqrtOf, std::sqrt(x));
CARINA_NUMBER(RsqrtOf, T{1} / std::sqrt(x));
CARINA_NUMBER(ReciprocalOf, T{1} / x);
CARINA_NUMBER(SinOf, std::sin(x));
CARINA_NUMBER(CosOf, std::cos(x));
CARINA_NUMBER(TanOf, std::tan(x));
CARINA_NUMBER(AsinOf, std::asin(x));
CARINA_NUMBER(AcosOf, std::acos(x));
CARINA_NUMBER(AtanOf, std::atan(x));
CARINA_NUMBER(SinhOf, std::sinh(x));
CARINA_NUMBER(CoshOf, std::cosh(x));
CARINA_NUMBER(AsinhOf, std::asinh(x));
CARINA_NUMBER(AcoshOf, std::acosh(x));
CARINA_NUMBER(AtanhOf, std::atanh(x));
CARINA_NUMBER(TanhOf, std::tanh(x));
CARINA_NUMBER(SigmoidOf, T{1} / (T{1} + std::exp(-x)));
CARINA_NUMBER(ErfOf, std::erf(x));
CARINA_NUMBER(ErfcOf, std::erfc(x));
CARINA_NUMBER(NdtrOf, static_cast<T>(0.5) * std::erfc(-x / std::sqrt(static_cast<T>(2))));
CARINA_NUMBER(ErfcxOf, static_cast<T>(erfcx(static_cast<double>(x))));
CARINA_NUMBER(BesselJ0Of, static_cast<T>(std::cyl_bessel_j(0.0, std::abs(static_cast<double>(x)))));
CARINA_NUMBER(LgammaOf, std::lgamma(x));
CARINA_NUMBER(SincOf, x == T{0} ? T{1} : std::sin(static_cast<T>(kPi) * x) / (static_cast<T>(kPi) * x));
CARINA_NUMBER(Deg2RadOf, x* static_cast<T>(kPi / 180));
CARINA_NUMBER(Rad2DegOf, x* static_cast<T>(180 / kPi));
#undef CARINA_NUMBER

/// Inverse of erf: a closed-form approximation refined by Newton iterations.
Result<Kernel> prepareErfinv(const ir::Node&) {
  return floatKernel([](auto x) {
    using T = decltype(x);
    const auto value = static_cast<double>(x);
    if (value <= -1 || value >= 1 || value != value) {
      return value == 1    ? std::numeric_limits<T>::infinity()
             : value == -1 ? -std::numeric_limits<T>::infinity()
                           : std::numeric_limits<T>::quiet_NaN();
    }
    const double w = std::log((1 - value) * (1 + value)), a = 2 / (kPi * 0.147) + w / 2;
    double y = std::copysign(std::sqrt(std::sqrt(a * a - w / 0.147) - a), value);
    for (int i = 0; i < 3; ++i) y -= (std::erf(y) - value) / (2 / std::sqrt(kPi) * std::exp(-y * y));
    return static_cast<T>(y);
  });
}

/// Derivative of lgamma: reflection below 0, recurrence up to 6, then the asymptotic series.
double digammaOf(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    if (x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
    return digammaOf(1 - x) - kPi / std::tan(kPi * x);
  }
  double sum = 0;
  while (x < 6) {
    sum -= 1 / x;
    x += 1;
  }
  const double r = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r / 132))));
}
Result<Kernel> prepareDigamma(const ir::Node&) {
  return floatKernel([](auto x) { return static_cast<decltype(x)>(digammaOf(static_cast<double>(x))); });
}

/// Modified Bessel function of order 0: sums its power series, which converges for all arguments that do not
/// overflow.
Result<Kernel> prepareI0(const ir::Node&) {
  return floatKernel([](auto x) {
    const double quarter = static_cast<double>(x) * static_cast<double>(x) / 4;
    double term = 1, sum = 1;
    for (int k = 1; term > sum * 1e-17 && k < 2000; ++k) {
      term *= quarter / (static_cast<double>(k) * k);
      sum += term;
    }
    return static_cast<decltype(x)>(sum);
  });
}

Result<Kernel> prepareLogit(const ir::Node& node) {
  const Arguments a(node);
  const bool clamped = a.given("eps");
  const double eps = a.real("eps", 0);
  return floatKernel([=](auto x) {
    using T = decltype(x);
    if (clamped) x = clampTo(x, static_cast<T>(eps), static_cast<T>(1 - eps));
    return std::log(x / (T{1} - x));
  });
}

Result<Kernel> prepareRoundDecimals(const ir::Node& node) {
  const int64_t decimals = Arguments(node).integer("decimals");
  const double factor = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  return numberKernel([=](auto x) {
    return forFloatsOnly(x, [&](auto v) {
      const auto scale = static_cast<decltype(v)>(factor);
      return decimals >= 0 ? roundEven(v * scale) / scale : roundEven(v / scale) * scale;
    });
  });
}

Result<Kernel> prepareNanToNum(const ir::Node& node) {
  const Arguments a(node);
  const auto value = [&](std::string_view name) {
    return a.given(name) ? std::optional(a.real(name)) : std::nullopt;
  };
  const auto nan = value("nan"), high = value("posinf"), low = value("neginf");
  return numberKernel([=](auto x) {
    return forFloatsOnly(x, [&](auto v) {
      using T = decltype(v);
      if (isNan(v)) return static_cast<T>(nan.value_or(0));
      if (v == std::numeric_limits<T>::infinity())
        return high ? static_cast<T>(*high) : std::numeric_limits<T>::max();
      if (v == -std::numeric_limits<T>::infinity())
        return low ? static_cast<T>(*low) : std::numeric_limits<T>::lowest();
      return v;
    });
  });
}

Result<Kernel> prepareBitwiseNot(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    const DType dtype = call.operand(0).dtype();
    if (isFloat(dtype)) return unsupportedType(dtype);
    return forNumber(
        dtype,
        [&](auto tag) -> Status {
          using T = decltype(tag);
          if constexpr (std::is_integral_v<T>) {
            const bool isBool = dtype == DType::Bool;
            mapElements<T>(call,
                           [isBool](T x) { return isBool ? static_cast<T>(x == 0) : static_cast<T>(~x); });
          }
          return {};
        },
        true);
  });
}

constexpr KernelEntry kUnaryKernels[] = {
    {"aten.abs.default", prepareNumber<AbsOf>},
    {"aten.neg.default", prepareNumber<NegOf>},
    {"aten.sign.default", prepareNumber<SignOf>},
    {"aten.sgn.default", prepareNumber<SignOf>},
    {"aten.floor.default", prepareNumber<FloorOf>},
    {"aten.ceil.default", prepareNumber<CeilOf>},
    {"aten.trunc.default", prepareNumber<TruncOf>},
    {"aten.round.default", prepareNumber<RoundOf>},
    {"aten.round.decimals", prepareRoundDecimals},
    {"aten.frac.default", prepareNumber<FracOf>},
    {"aten.square.default", prepareNumber<SquareOf>},
    {"aten.bitwise_not.default", prepareBitwiseNot},
    {"aten.nan_to_num.default", prepareNanToNum},
    {"aten.isnan.default", prepareNumber<IsNanOf>},
    {"aten.isinf.default", prepareNumber<IsInfOf>},
    {"aten.isfinite.default", prepareNumber<IsFiniteOf>},
    {"aten.isposinf.default", prepareNumber<IsPosInfOf>},
    {"aten.isneginf.default", prepareNumber<IsNegInfOf>},
    {"aten.signbit.default", prepareNumber<SignbitOf>},
    {"aten.logical_not.default", prepareNumber<LogicalNotOf>},
    {"aten.exp.default", prepareFloat<ExpOf>},
    {"aten.exp2.default", prepareFloat<Exp2Of>},
    {"aten.expm1.default", prepareFloat<Expm1Of>},
    {"aten.log.default", prepareFloat<LogOf>},
    {"aten.log2.default", prepareFloat<Log2Of>},
    {"aten.log10.default", prepareFloat<Log10Of>},
    {"aten.log1p.default", prepareFloat<Log1pOf>},
    {"aten.sqrt.default", prepareFloat<SqrtOf>},
    {"aten.rsqrt.default", prepareFloat<RsqrtOf>},
    {"aten.reciprocal.default", prepareFloat<ReciprocalOf>},
    {"aten.sin.default", prepareFloat<SinOf>},
    {"aten.cos.default", prepareFloat<CosOf>},
    {"aten.tan.default", prepareFloat<TanOf>},
    {"aten.asin.default", prepareFloat<AsinOf>},
    {"aten.acos.default", prepareFloat<AcosOf>},
    {"aten.atan.default", prepareFloat<AtanOf>},
    {"aten.sinh.default", prepareFloat<SinhOf>},
    {"aten.cosh.default", prepareFloat<CoshOf>},
    {"aten.asinh.default", prepareFloat<AsinhOf>},
    {"aten.acosh.default", prepareFloat<AcoshOf>},
    {"aten.atanh.default", prepareFloat<AtanhOf>},
    {"aten.tanh.default", prepareFloat<TanhOf>},
    {"aten.sigmoid.default", prepareFloat<SigmoidOf>},
    {"aten.erf.default", prepareFloat<ErfOf>},
    {"aten.erfc.default", prepareFloat<ErfcOf>},
    {"aten.special_ndtr.default", prepareFloat<NdtrOf>},
    {"aten.special_erfcx.default", prepareFloat<ErfcxOf>},
    {"aten.special_bessel_j0.default", prepareFloat<BesselJ0Of>},
    {"aten.erfinv.default", prepareErfinv},
    {"aten.digamma.default", prepareDigamma},
    {"aten.i0.default", prepareI0},
    {"aten.logit.default", prepareLogit},
    {"aten.lgamma.default", prepareFloat<LgammaOf>},
    {"aten.sinc.default", prepareFloat<SincOf>},
    {"aten.deg2rad.default", prepareFloat<Deg2RadOf>},
    {"aten.rad2deg.default", prepareFloat<Rad2DegOf>},
};

}  // namespace

std::span<const KernelEntry> unaryKernels() {
  return kUnaryKernels;
}

}  // namespace carina::aten
