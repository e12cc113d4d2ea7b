// SPDX-License-Identifier: Apache-2.0
#include "base/shape.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace carina {
namespace {

TEST(Shape, ElementCountIsChecked) {
  EXPECT_EQ(checkedNumElements({}), 1);
  EXPECT_EQ(checkedNumElements({2, 3, 4}), 24);
  EXPECT_EQ(checkedNumElements({int64_t{1} << 62, 4}), std::nullopt);
  EXPECT_EQ(checkedNumElements({2, -1}), std::nullopt);
}

TEST(Shape, StridesAndText) {
  EXPECT_EQ(rowMajorStrides({2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(rowMajorStrides({}), Shape{});
  EXPECT_EQ(shapeText({1, 28, 28, 3}), "[1,28,28,3]");
}

TEST(Shape, BroadcastingFollowsNumpy) {
  EXPECT_EQ(broadcastShapes({4, 1, 3}, {5, 1}), (Shape{4, 5, 3}));
  EXPECT_EQ(broadcastShapes({}, {2}), (Shape{2}));
  EXPECT_EQ(broadcastShapes({0}, {1}), (Shape{0}));
  EXPECT_EQ(broadcastShapes({2}, {3}), std::nullopt);
}

RC_GTEST_PROP(Shape, BroadcastingIsSymmetric, ()) {
  const auto sizes = rc::gen::container<Shape>(rc::gen::inRange<int64_t>(0, 4));
  const Shape a = *sizes, b = *sizes;
  RC_ASSERT(broadcastShapes(a, b) == broadcastShapes(b, a));
  RC_ASSERT(broadcastShapes(a, a) == a);
}

TEST(Shape, DimensionsWrapOnce) {
  EXPECT_EQ(normalizeDim(-1, 4), 3);
  EXPECT_EQ(normalizeDim(3, 4), 3);
  EXPECT_EQ(normalizeDim(4, 4), std::nullopt);
  EXPECT_EQ(normalizeDim(-5, 4), std::nullopt);
}

TEST(Arithmetic, OverflowIsDetected) {
  EXPECT_EQ(checkedAdd(INT64_MAX, 1), std::nullopt);
  EXPECT_EQ(checkedAdd(-3, 5), 2);
  EXPECT_EQ(checkedMul(int64_t{1} << 40, int64_t{1} << 40), std::nullopt);
  EXPECT_EQ(checkedMul(-7, 6), -42);
  EXPECT_EQ(roundUp(17, 16), 32);
  EXPECT_EQ(roundUp(16, 16), 16);
  EXPECT_EQ(ceilDiv(17, 16), 2);
}

}  // namespace
}  // namespace carina
