// SPDX-License-Identifier: Apache-2.0
// Python numbers for the computation of sizes: integers and fractions are exact, others are doubles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace carina::pt2 {

/// A Boolean is 0 or 1, as in Python.
struct SizeNumber {
  bool exact = true;
  int64_t numerator = 0, denominator = 1;  // when exact; in lowest terms, the denominator positive
  double real = 0;                         // otherwise

  static SizeNumber whole(int64_t value) { return {true, value, 1, 0}; }
  static SizeNumber ofReal(double value) { return {false, 0, 1, value}; }

  double asReal() const;
  bool isZero() const { return exact ? numerator == 0 : real == 0; }
  /// Empty if it is not a 64-bit integer. Reals without a fraction count as integers.
  std::optional<int64_t> asWhole() const;
};

enum class SizeOp : uint8_t {
  // binary
  Add,
  Sub,
  Mul,
  FloorDiv,
  CeilDiv,
  TrueDiv,  // gives a real
  Mod,      // has the sign of the divisor
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
  // unary
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

/// Empty if Python raises an error (division by zero) or the result does not fit in 64 bits.
std::optional<SizeNumber> compute(SizeOp op, const SizeNumber& a, const SizeNumber& b);
std::optional<SizeNumber> compute(SizeOp op, const SizeNumber& a);

/// The exact fraction in lowest terms; empty if the denominator is 0.
std::optional<SizeNumber> fraction(int64_t numerator, int64_t denominator);

}  // namespace carina::pt2
