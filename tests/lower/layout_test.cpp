// SPDX-License-Identifier: Apache-2.0
// Layout descriptions against index arithmetic: for any views and permutes, reading the storage through the
// description gives the same elements as moving the data at every step.
#include "lower/layout.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace carina::lower {
namespace {

using Values = std::vector<int64_t>;

/// Row-major data of shape, transposed.
Values transposed(const Values& data, const Shape& shape, const std::vector<int>& permutation) {
  const Shape strides = rowMajorStrides(shape);
  Shape index(shape.size(), 0);
  Values result;
  for (size_t n = 0; n < data.size(); ++n) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i)
      offset += index[i] * strides[static_cast<size_t>(permutation[i])];
    result.push_back(data[static_cast<size_t>(offset)]);
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < shape[static_cast<size_t>(permutation[i])]) break;
      index[i] = 0;
    }
  }
  return result;
}

/// The aten tensor in row-major order, read from storage.
Values read(const Values& storage, const Layout& layout) {
  const auto move = transposition(layout.axes, layout.logicalAxes());
  return move ? transposed(storage, move->from, move->permutation) : storage;
}

Values counting(int64_t count) {
  Values values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(Layout, ChannelLast) {
  const Layout layout = Layout::ordered({1, 3, 4, 5}, {0, 2, 3, 1});
  EXPECT_EQ(layout.axes, (Values{4, 5, 3}));
  EXPECT_EQ(layout.shape(), (Shape{1, 3, 4, 5}));
  EXPECT_FALSE(layout.isRowMajor());
  EXPECT_TRUE(Layout::ordered({1, 3, 1, 1}, {0, 2, 3, 1}).isRowMajor());
}

TEST(Layout, FlattenOfChannelLastMovesNothing) {
  const auto flat = Layout::ordered({1, 3, 4, 5}, {0, 2, 3, 1}).viewed({1, 60});
  ASSERT_TRUE(flat);
  EXPECT_EQ(flat->axes, (Values{4, 5, 3}));
  EXPECT_EQ(flat->dims, (std::vector<std::vector<int>>{{}, {2, 0, 1}}));
}

TEST(Layout, ViewSplitsAnAxis) {
  const auto groups = Layout::ordered({1, 6, 4, 5}, {0, 2, 3, 1}).viewed({1, 2, 3, 4, 5});
  ASSERT_TRUE(groups);
  EXPECT_EQ(groups->axes, (Values{4, 5, 2, 3}));
}

TEST(Layout, ViewAcrossMovedAxesIsImpossible) {
  EXPECT_FALSE(Layout::ordered({4, 6}, {1, 0}).viewed({3, 8}));
}

TEST(Transposition, MergesNeighbours) {
  const auto move = transposition({4, 5, 3}, {2, 0, 1});
  ASSERT_TRUE(move);
  EXPECT_EQ(move->from, (Shape{20, 3}));
  EXPECT_EQ(move->permutation, (std::vector<int>{1, 0}));
  EXPECT_FALSE(transposition({4, 5, 3}, {0, 1, 2}));
}

RC_GTEST_PROP(Layout, ViewsAndPermutesDescribeTheSameElements, ()) {
  const Values pool{1, 2, 3, 4, 6};
  Shape shape(static_cast<size_t>(*rc::gen::inRange(1, 5)));
  for (int64_t& s : shape) s = pool[static_cast<size_t>(*rc::gen::inRange(0, 5))];
  const Values storage = counting(numElements(shape));
  Layout layout = Layout::rowMajor(shape);
  Values expected = storage;
  for (int step = 0; step < 5; ++step) {
    if (*rc::gen::arbitrary<bool>()) {
      std::vector<int> permutation(shape.size());
      std::iota(permutation.begin(), permutation.end(), 0);
      for (size_t i = permutation.size(); i > 1; --i) {
        std::swap(permutation[i - 1],
                  permutation[static_cast<size_t>(*rc::gen::inRange(0, static_cast<int>(i)))]);
      }
      expected = transposed(expected, shape, permutation);
      Shape next;
      for (int d : permutation) next.push_back(shape[static_cast<size_t>(d)]);
      shape = next;
      layout = layout.permuted(permutation);
    } else {
      // A new shape: the prime factors of the count, cut at random places.
      Shape next{1};
      for (int64_t rest = numElements(shape), p = 2; rest > 1;) {
        if (rest % p != 0) {
          ++p;
          continue;
        }
        rest /= p;
        if (*rc::gen::arbitrary<bool>()) next.push_back(1);
        next.back() *= p;
      }
      const auto viewed = layout.viewed(next);
      if (!viewed) continue;
      layout = *viewed;
      shape = next;
    }
    RC_ASSERT(layout.shape() == shape);
    RC_ASSERT(read(storage, layout) == expected);
  }
}

}  // namespace
}  // namespace carina::lower
