// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace carina {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0)
    return fail(Code::InvalidOperator, "{} is odd", value).at("half").withRemedy("Give an even number.");
  return value / 2;
}

Result<int> quarter(int value) {
  CARINA_TRY(const int once, half(value));
  CARINA_TRY(const int twice, half(once));
  return twice;
}

TEST(Result, ValuesPassThrough) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_TRUE(quarter(4).ok());
}

TEST(Result, TheFirstFailureReturns) {
  const auto result = quarter(6);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message(), "3 is odd");
}

TEST(Result, ContextIsAddedWithoutOverwriting) {
  const Error error = quarter(6).error();
  const Error placed = Error(error).inFile("a.txt").at("elsewhere");
  EXPECT_EQ(placed.str(), "a.txt: half: 3 is odd\n  Give an even number.");
}

TEST(Result, ErrorsCollect) {
  Error error = fail(Code::InvalidOperator, "first");
  error.append(fail(Code::InvalidOperator, "second"));
  EXPECT_EQ(error.diagnostics().size(), 2u);
  EXPECT_EQ(error.str(), "first\nsecond");
}

TEST(Result, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(3));
  const std::unique_ptr<int> value = *std::move(result);
  EXPECT_EQ(*value, 3);
}

TEST(ResultDeathTest, ReadingAFailedResultIsABug) {
  const Result<int> failed = fail(Code::InvalidOperator, "no");
  EXPECT_DEATH(static_cast<void>(failed.value()), "internal error");
}

}  // namespace
}  // namespace carina
