// SPDX-License-Identifier: Apache-2.0
#include "pt2/size_number.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "base/shape.hpp"

namespace carina::pt2 {
namespace {

using Maybe = std::optional<SizeNumber>;

Maybe truth(bool value) {
  return SizeNumber::whole(value ? 1 : 0);
}

Maybe finite(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  return SizeNumber::ofReal(value);
}

Maybe product(const SizeNumber& a, const SizeNumber& b) {
  const auto numerator = checkedMul(a.numerator, b.numerator);
  const auto denominator = checkedMul(a.denominator, b.denominator);
  if (!numerator || !denominator) return std::nullopt;
  return fraction(*numerator, *denominator);
}

Maybe negated(const SizeNumber& a) {
  return product(a, SizeNumber::whole(-1));
}

Maybe sum(const SizeNumber& a, const SizeNumber& b) {
  const auto left = checkedMul(a.numerator, b.denominator), right = checkedMul(b.numerator, a.denominator);
  const auto denominator = checkedMul(a.denominator, b.denominator);
  const auto numerator = left && right ? checkedAdd(*left, *right) : std::nullopt;
  if (!numerator || !denominator) return std::nullopt;
  return fraction(*numerator, *denominator);
}

Maybe quotient(const SizeNumber& a, const SizeNumber& b) {
  if (b.numerator == 0 || b.numerator == std::numeric_limits<int64_t>::min()) return std::nullopt;
  const auto inverse = fraction(b.denominator, b.numerator);
  return inverse ? product(a, *inverse) : std::nullopt;
}

int64_t floorOf(const SizeNumber& a) {
  const int64_t whole = a.numerator / a.denominator;
  return a.numerator % a.denominator < 0 ? whole - 1 : whole;
}

Maybe floored(const SizeNumber& a) {
  return a.exact ? SizeNumber::whole(floorOf(a)) : finite(std::floor(a.real));
}

/// -1, 0, 1
Maybe compared(const SizeNumber& a, const SizeNumber& b) {
  if (a.exact && b.exact) {
    const auto minus = negated(b);
    const auto difference = minus ? sum(a, *minus) : std::nullopt;
    if (!difference) return std::nullopt;
    return SizeNumber::whole((difference->numerator > 0 ? 1 : 0) - (difference->numerator < 0 ? 1 : 0));
  }
  const double x = a.asReal(), y = b.asReal();
  return SizeNumber::whole((x > y ? 1 : 0) - (x < y ? 1 : 0));
}

Maybe power(const SizeNumber& base, const SizeNumber& exponent) {
  constexpr int64_t kMost = 64;  // larger ones overflow for any base but 0, 1 and -1
  const bool whole = base.exact && exponent.exact && exponent.denominator == 1;
  if (!whole) return finite(std::pow(base.asReal(), exponent.asReal()));
  if (exponent.numerator < -kMost || exponent.numerator > kMost) return std::nullopt;
  Maybe result = SizeNumber::whole(1);
  for (int64_t i = std::abs(exponent.numerator); i > 0 && result; --i) result = product(*result, base);
  if (!result || exponent.numerator >= 0) return result;
  return quotient(SizeNumber::whole(1), *result);
}

Maybe floorDivided(const SizeNumber& a, const SizeNumber& b) {
  if (b.isZero()) return std::nullopt;
  if (!a.exact || !b.exact) return finite(std::floor(a.asReal() / b.asReal()));
  const auto ratio = quotient(a, b);
  return ratio ? floored(*ratio) : std::nullopt;
}

Maybe remainder(const SizeNumber& a, const SizeNumber& b) {
  const auto times = floorDivided(a, b);
  const auto taken = times ? compute(SizeOp::Mul, *times, b) : std::nullopt;
  return taken ? compute(SizeOp::Sub, a, *taken) : std::nullopt;
}

}  // namespace

double SizeNumber::asReal() const {
  return exact ? static_cast<double>(numerator) / static_cast<double>(denominator) : real;
}

std::optional<int64_t> SizeNumber::asWhole() const {
  if (exact) return denominator == 1 ? std::optional(numerator) : std::nullopt;
  constexpr double kExact = 0x1p53;
  if (!(std::abs(real) <= kExact) || std::floor(real) != real) return std::nullopt;
  return static_cast<int64_t>(real);
}

std::optional<SizeNumber> fraction(int64_t numerator, int64_t denominator) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  if (denominator == 0 || denominator == kLeast || numerator == kLeast) return std::nullopt;
  const int64_t sign = denominator < 0 ? -1 : 1;
  const int64_t common = std::gcd(numerator, denominator);
  return SizeNumber{true, sign * (numerator / common), sign * (denominator / common), 0};
}

bool takesTwo(SizeOp op) {
  return op <= SizeOp::Or;
}

std::optional<SizeNumber> compute(SizeOp op, const SizeNumber& a, const SizeNumber& b) {
  const bool exact = a.exact && b.exact;
  const auto order = [&](auto holds) -> Maybe {
    const auto sign = compared(a, b);
    return sign ? truth(holds(sign->numerator)) : std::nullopt;
  };
  switch (op) {
    case SizeOp::Add:
      return exact ? sum(a, b) : finite(a.asReal() + b.asReal());
    case SizeOp::Sub: {
      if (!exact) return finite(a.asReal() - b.asReal());
      const auto minus = negated(b);
      return minus ? sum(a, *minus) : std::nullopt;
    }
    case SizeOp::Mul:
      return exact ? product(a, b) : finite(a.asReal() * b.asReal());
    case SizeOp::FloorDiv:
      return floorDivided(a, b);
    case SizeOp::CeilDiv: {
      const auto minus = compute(SizeOp::Neg, a);
      const auto divided = minus ? floorDivided(*minus, b) : std::nullopt;
      return divided ? compute(SizeOp::Neg, *divided) : std::nullopt;
    }
    case SizeOp::TrueDiv:
      return b.isZero() ? std::nullopt : finite(a.asReal() / b.asReal());
    case SizeOp::Mod:
      return remainder(a, b);
    case SizeOp::Pow:
      return power(a, b);
    case SizeOp::Min:
    case SizeOp::Max: {
      const auto sign = compared(a, b);
      if (!sign) return std::nullopt;
      return (sign->numerator < 0) == (op == SizeOp::Min) ? a : b;
    }
    case SizeOp::Equal:
      return order([](int64_t sign) { return sign == 0; });
    case SizeOp::NotEqual:
      return order([](int64_t sign) { return sign != 0; });
    case SizeOp::Less:
      return order([](int64_t sign) { return sign < 0; });
    case SizeOp::LessEqual:
      return order([](int64_t sign) { return sign <= 0; });
    case SizeOp::Greater:
      return order([](int64_t sign) { return sign > 0; });
    case SizeOp::GreaterEqual:
      return order([](int64_t sign) { return sign >= 0; });
    case SizeOp::And:
      return truth(!a.isZero() && !b.isZero());
    case SizeOp::Or:
      return truth(!a.isZero() || !b.isZero());
    default:
      return std::nullopt;
  }
}

std::optional<SizeNumber> compute(SizeOp op, const SizeNumber& a) {
  switch (op) {
    case SizeOp::Neg:
      return a.exact ? negated(a) : finite(-a.real);
    case SizeOp::Pos:
      return a;
    case SizeOp::Not:
      return truth(a.isZero());
    case SizeOp::Abs:
      return a.asReal() < 0 ? compute(SizeOp::Neg, a) : a;
    case SizeOp::Floor:
    case SizeOp::Ceil:
    case SizeOp::Trunc: {
      const bool up = op == SizeOp::Ceil || (op == SizeOp::Trunc && a.asReal() < 0);
      const auto turned = up ? compute(SizeOp::Neg, a) : a;
      const auto down = turned ? floored(*turned) : std::nullopt;
      const auto result = down && up ? compute(SizeOp::Neg, *down) : down;
      const auto whole = result ? result->asWhole() : std::nullopt;
      if (!whole) return std::nullopt;
      return SizeNumber::whole(*whole);
    }
    case SizeOp::Sqrt:
      return a.asReal() < 0 ? std::nullopt : finite(std::sqrt(a.asReal()));
    case SizeOp::ToReal:
      return SizeNumber::ofReal(a.asReal());
    default:
      return std::nullopt;
  }
}

}  // namespace carina::pt2
