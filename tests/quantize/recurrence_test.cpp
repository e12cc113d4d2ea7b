// SPDX-License-Identifier: Apache-2.0
// Values that share a range because one weight stream produces them.
#include "quantize/recurrence.hpp"

#include <gtest/gtest.h>

#include "small_network.hpp"

namespace carina::quantize {
namespace {

TEST(Recurrence, PartsOfOneInputShareTheRangeOfTheirProducts) {
  Network n;
  Value *x = n.input({6, 1, 4}), *other = n.input({3, 1, 4}), *weight = n.constant({5, 4}, -1, 1);
  const auto product = [&](Value* part) { return n.make<aten::Linear>(part, weight, nullptr); };
  const auto rows = [&](int64_t first) {
    return n.make<aten::SliceTensor>(x, int64_t{0}, first, first + 3, int64_t{1});
  };
  Value *one = product(rows(0)), *two = product(rows(3)), *elsewhere = product(other);
  n.graph.setOutputs({one, two, elsewhere});
  const auto pairs = successiveValues(n.graph);
  ASSERT_EQ(pairs.size(), 1u) << "layers that only share weights have separate ranges";
  EXPECT_EQ(pairs[0].first, one);
  EXPECT_EQ(pairs[0].second, two);
}

}  // namespace
}  // namespace carina::quantize
