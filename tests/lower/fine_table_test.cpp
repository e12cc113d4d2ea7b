// SPDX-License-Identifier: Apache-2.0
// Tables of 16-bit functions, compared with the functions at every code.
#include "lower/fine_table.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace carina::lower {
namespace {

int64_t code(double x) {
  return static_cast<int64_t>(std::clamp(std::nearbyint(x), -32767.0, 32767.0));
}

/// The largest error and the error of a single table, in codes.
std::pair<int64_t, int64_t> errors(const std::function<int64_t(int64_t)>& f, const FineTable& table) {
  int64_t fine = 0, plain = 0;
  for (int64_t q = -32768; q <= 32767; ++q) {
    fine = std::max(fine, std::abs(readFineTable(table, q) - f(q)));
    plain = std::max(plain, std::abs(readTable(table.table, q) - f(q)));
  }
  return {fine, plain};
}

TEST(FineTable, ASmoothFunctionTakesOneTable) {
  const auto f = [](int64_t q) { return code(32767 * std::tanh(static_cast<double>(q) / 8192)); };
  const FineTable table = fineTable(f, 16);
  EXPECT_TRUE(table.pieces.empty());
  EXPECT_LE(errors(f, table).first, 2);
}

TEST(FineTable, LinesCrossACurveInsteadOfStayingOnOneSide) {
  // A line between two points of this sine, 128 codes apart, is up to 32767 / 2100^2 * 64^2 / 2 = 15.2 codes
  // off.
  const auto f = [](int64_t q) { return code(32000 * std::sin(static_cast<double>(q) / 2100)); };
  const FineTable table = fineTable(f, 16);
  EXPECT_TRUE(table.pieces.empty());
  const int64_t worst = errors(f, table).first;
  EXPECT_LE(worst, 9);
  EXPECT_GE(worst, 7);
}

TEST(FineTable, StepsBecomeExact) {
  // floor over [-3.3, 3.3]: a step at every integer.
  const auto f = [](int64_t q) { return code(8000 * std::floor(static_cast<double>(q) / 10'000)); };
  const FineTable table = fineTable(f, 16);
  EXPECT_EQ(table.pieces.size(), 7u);
  const auto [fine, plain] = errors(f, table);
  EXPECT_EQ(fine, 0);
  EXPECT_GT(plain, 7000);
}

TEST(FineTable, APoleIsApproximatedWithin64Codes) {
  const auto f = [](int64_t q) { return q == 0 ? 0 : code(3e6 / static_cast<double>(q)); };
  const FineTable table = fineTable(f, 16);
  EXPECT_LE(table.pieces.size(), kMaxPieces);
  const auto [fine, plain] = errors(f, table);
  EXPECT_GT(plain, 30'000);
  EXPECT_LE(fine, 64);
}

TEST(ProductTable, TabulatesTheSmootherFactorOfAProduct) {
  // silu over [-40, 40] with results clamped at 2: a single table is about 20 codes off.
  const auto silu = [](int64_t q) {
    const double x = static_cast<double>(q) * 40 / 32767;
    return x / (1 + std::exp(-x)) / 2 * 32767;
  };
  const auto rounded = [&](int64_t q) { return code(silu(q)); };
  EXPECT_FALSE(fineTable(rounded, 12).pieces.empty());
  const auto product = productTable(silu, 12);
  ASSERT_TRUE(product);
  for (int64_t q = -32768; q <= 32767; ++q)
    ASSERT_LE(std::abs(readProductTable(*product, q) - rounded(q)), 12);
}

TEST(ProductTable, NeedsARootAtZeroAndNoSteps) {
  EXPECT_FALSE(productTable([](int64_t q) { return static_cast<double>(q) + 100; }, 16));
  EXPECT_FALSE(
      productTable([](int64_t q) { return 8000 * std::floor(static_cast<double>(q) / 10'000); }, 16));
  EXPECT_FALSE(productTable([](int64_t q) { return q == 0 ? 0 : 3e6 / static_cast<double>(q); }, 16));
  EXPECT_FALSE(productTable([](int64_t) { return 0.0; }, 16));
  EXPECT_FALSE(productTable([](int64_t q) { return q < 0 ? -INFINITY : static_cast<double>(q); }, 16));
}

TEST(FineTable, TheNumberOfPiecesIsLimited) {
  const auto f = [](int64_t q) { return q * 7919 % 30'011; };
  EXPECT_LE(fineTable(f, 16).pieces.size(), kMaxPieces);
}

}  // namespace
}  // namespace carina::lower
