// SPDX-License-Identifier: Apache-2.0
#include "base/array_fit.hpp"

#include <gtest/gtest.h>

#include <array>

#include "support/require.hpp"

namespace carina {
namespace {

Tensor array(Shape shape) {
  return Tensor::zeros(DType::Float32, std::move(shape));
}

TEST(ArrayFit, IntegersKeepTheirValues) {
  const Tensor wide = Tensor::from<int64_t>({2}, std::array<int64_t, 2>{-128, 127});
  auto narrow = require(convertIntegers(wide, DType::Int8));
  EXPECT_EQ(narrow.integerAt(0), -128);
  const auto unfit = convertIntegers(wide, DType::UInt8);
  ASSERT_FALSE(unfit.ok());
  EXPECT_EQ(unfit.error().message(), "value -128 does not fit u8");
}

TEST(ArrayFit, DetectsTheOtherChannelOrder) {
  const Shape nchw{1, 3, 8, 8}, nhwc{1, 8, 8, 3};
  for (const Shape& array : {Shape{1, 8, 8, 3}, Shape{64, 8, 8, 3}, Shape{64, 1, 8, 8, 3}})
    EXPECT_NE(layoutRemedy(array, nchw).find("channels-last"), std::string::npos);
  EXPECT_NE(layoutRemedy({1, 3, 8, 8}, nhwc).find("channels-first"), std::string::npos);
  EXPECT_EQ(layoutRemedy({1, 3, 8, 9}, nchw), "");
  EXPECT_EQ(layoutRemedy({8, 3}, nchw), "");
  EXPECT_EQ(layoutRemedy({2, 8, 8, 3}, {2, 8, 3}), "");
}

TEST(ArrayFit, ListsTheArraysOfAFile) {
  EXPECT_EQ(describeArrays({{"x", array({8, 1, 2, 2})}}, "in0", {1, 2, 2}),
            "the file holds x f32[8,1,2,2]; rename it to in0?");
  EXPECT_EQ(describeArrays({{"x", array({8, 1, 2, 2})}, {"y", array({8})}}, "in0", {1, 2, 2}),
            "the file holds x f32[8,1,2,2], y f32[8]; rename one of them to in0?");
  EXPECT_EQ(describeArrays({{"y", array({8})}}, "in0", {1, 2, 2}), "the file holds y f32[8]");
  EXPECT_EQ(describeArrays({}, "in0", {1}), "the file holds no array");
  const NamedTensors many(20, {"a", array({1})});
  EXPECT_NE(describeArrays(many, "in0", {2}).find("and 12 more"), std::string::npos);
}

}  // namespace
}  // namespace carina
