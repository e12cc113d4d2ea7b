// SPDX-License-Identifier: Apache-2.0
// Numbers of Python that sizes are computed with: whole ones and fractions exactly, others as double.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace carina::pt2 {

/// A truth value is 0 or 1, as in Python.
struct SizeNumber {
  bool exact = true;
  int64_t numerator = 0, denominator = 1;  // when exact; in lowest terms, the denominator positive
  double real = 0;                         // otherwise

  static SizeNumber whole(int64_t value) { return {true, value, 1, 0}; }
  static SizeNumber ofReal(double value) { return {false, 0, 1, value}; }

  double asReal() const;
  bool isZero() const { return exact ? numerator == 0 : real == 0; }
  /// Nothing when it is no whole number of 64 bits. Reals are whole numbers where they have no fraction.
  std::optional<int64_t> asWhole() const;
};

enum class SizeOp : uint8_t {
  // of two
  Add,
  Sub,
  Mul,
  FloorDiv,
  CeilDiv,
  TrueDiv,  // gives a real
  Mod,      // the sign of the divisor
  Pow,
  Min,
  Max,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  And,
  Or,
  // of one
  Neg,
  Pos,
  Not,
  Abs,
  Floor,
  Ceil,
  Trunc,
  Sqrt,
  ToReal,
};
bool takesTwo(SizeOp op);

/// Nothing where Python raises an error (division by zero) or 64 bits do not hold the result.
std::optional<SizeNumber> compute(SizeOp op, const SizeNumber& a, const SizeNumber& b);
std::optional<SizeNumber> compute(SizeOp op, const SizeNumber& a);

/// The exact fraction in lowest terms; nothing when the denominator is 0.
std::optional<SizeNumber> fraction(int64_t numerator, int64_t denominator);

}  // namespace carina::pt2
