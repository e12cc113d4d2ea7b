// SPDX-License-Identifier: Apache-2.0
// Properties of the arena packing.
#include "compiler/allocator.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace carina::compiler {
namespace {

std::vector<LiveRange> randomRanges() {
  const auto count = *rc::gen::inRange(1, 40);
  std::vector<LiveRange> ranges;
  for (int i = 0; i < count; ++i) {
    const int first = *rc::gen::inRange(-1, 30);
    ranges.push_back({*rc::gen::inRange<int64_t>(1, 5000), first, first + *rc::gen::inRange(0, 8)});
  }
  return ranges;
}

RC_GTEST_PROP(Packing, LiveBuffersNeverOverlap, ()) {
  const auto ranges = randomRanges();
  const Packing packing = pack(ranges, 0, 200);
  RC_ASSERT(packing.bytes >= packingLowerBound(ranges));
  for (size_t i = 0; i < ranges.size(); ++i) {
    RC_ASSERT(packing.addresses[i] >= 0 && packing.addresses[i] % 16 == 0);
    RC_ASSERT(packing.addresses[i] + ranges[i].bytes <= packing.bytes);
    for (size_t j = 0; j < i; ++j) {
      if (!ranges[i].overlaps(ranges[j])) continue;
      RC_ASSERT(packing.addresses[i] + ranges[i].bytes <= packing.addresses[j] ||
                packing.addresses[j] + ranges[j].bytes <= packing.addresses[i]);
    }
  }
}

RC_GTEST_PROP(Packing, IsTheSameEveryTime, ()) {
  const auto ranges = randomRanges();
  RC_ASSERT(pack(ranges).addresses == pack(ranges).addresses);
}

TEST(Packing, ReachesTheBoundOnAChain) {
  // Each map lives while it is written and while the next one is.
  std::vector<LiveRange> ranges;
  for (int i = 0; i < 30; ++i) ranges.push_back({1000 + 37 * (i % 7), i, i + 1});
  EXPECT_EQ(pack(ranges).bytes, packingLowerBound(ranges));
}

TEST(Packing, OfNothingIsEmpty) {
  EXPECT_EQ(pack({}).bytes, 0);
}

}  // namespace
}  // namespace carina::compiler
