// SPDX-License-Identifier: Apache-2.0
// Properties of the arena packing.
#include "packing/packing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "packing/packing_check.hpp"

namespace carina {
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
  RC_ASSERT(isSound(ranges, pack(ranges, 0, 200)));
}

RC_GTEST_PROP(Packing, TheBoundIsTheLargestLiveSum, ()) {
  const auto ranges = randomRanges();
  int64_t bound = 0;
  for (const LiveRange& at : ranges) {
    int64_t sum = 0;
    for (const LiveRange& range : ranges) {
      if (range.first <= at.first && at.first <= range.last) sum += (range.bytes + 15) / 16 * 16;
    }
    bound = std::max(bound, sum);
  }
  RC_ASSERT(packingLowerBound(ranges) == bound);
}

TEST(Packing, ManyBuffersLiveAtOnceArePlacedInOneSweep) {
  // Millions of pairs collide: too many to search for an order.
  std::vector<LiveRange> fan, mixed;
  for (int i = 0; i < 20000; ++i) fan.push_back({8, i, 20000});
  EXPECT_EQ(pack(fan).bytes, packingLowerBound(fan));
  for (int i = 0; i < 6000; ++i) {
    const int first = i * 7919 % 6000;
    mixed.push_back({1 + i * 104729 % 5000, first, first + i * 31 % 2000});
  }
  const Packing packing = pack(mixed);
  EXPECT_TRUE(isSound(mixed, packing));
  EXPECT_LT(packing.bytes, packingLowerBound(mixed) * 5 / 4);
}

/// Layers that nearly fill 384 KiB, again and again, and small buffers that are live all the time.
std::vector<LiveRange> fullMemory(int repetitions) {
  std::vector<LiveRange> ranges;
  ranges.reserve(static_cast<size_t>(5 + 12 * repetitions));
  for (int i = 0; i < 5; ++i) ranges.push_back({240, 7 * i, 16 * repetitions});
  for (int r = 0; r < repetitions; ++r) {
    const int t = 16 * r;
    ranges.push_back({400, t, t + 3});
    ranges.push_back({307200, t, t + 1});
    ranges.push_back({76800, t + 1, t + 2});
    ranges.push_back({307200, t + 2, t + 3});
    ranges.push_back({76800, t + 3, t + 4});
    ranges.push_back({7776, t + 4, t + 12});
    ranges.push_back({151296, t + 5, t + 9});
    ranges.push_back({87152, t + 8, t + 9});
    ranges.push_back({87152, t + 9, t + 9});
    ranges.push_back({28672, t + 6, t + 8});
    ranges.push_back({16160, t + 5, t + 7});
    ranges.push_back({151296, t + 10, t + 14});
  }
  return ranges;
}

TEST(Packing, FillsAMemoryAgainAndAgain) {
  constexpr int64_t kLimit = 384 * 1024;
  for (const int repetitions : {30, 400, 6000}) {
    const std::vector<LiveRange> ranges = fullMemory(repetitions);
    ASSERT_LE(packingLowerBound(ranges), kLimit);
    const Packing packing = pack(ranges, kLimit, 100);
    EXPECT_LE(packing.bytes, kLimit) << repetitions;
    if (repetitions < 1000) {
      EXPECT_TRUE(isSound(ranges, packing));
    }
  }
}

TEST(Packing, VeryManyBuffersArePackedMoreDenselyThanInOneOrder) {
  int denser = 0;
  for (int seed = 1; seed <= 8; ++seed) {
    std::vector<LiveRange> ranges;
    ranges.reserve(6012);
    for (int i = 0; i < 12; ++i) ranges.push_back({240, 37 * i * seed, 6000});
    for (int i = 0; i < 6000; ++i) {
      const int first = i * 7919 % 6000;
      ranges.push_back({1 + i * (104729 + seed) % 50000, first, first + i * (31 + seed) % 5});
    }
    const Packing once = pack(ranges, 0, 0), better = pack(ranges, 0, 2000);
    EXPECT_TRUE(isSound(ranges, better));
    EXPECT_LE(better.bytes, once.bytes);
    denser += better.bytes < once.bytes ? 1 : 0;
  }
  EXPECT_GT(denser, 0);
}

RC_GTEST_PROP(Packing, ManyLiveBuffersNeverOverlap, ()) {
  std::vector<LiveRange> ranges;
  for (int i = 0; i < 300; ++i) {
    const int first = *rc::gen::inRange(-1, 200);
    const int longest = *rc::gen::element(3, 3, 3, 20, 250);
    ranges.push_back({*rc::gen::inRange<int64_t>(1, 5000), first, first + *rc::gen::inRange(0, longest)});
  }
  const int64_t target = *rc::gen::element<int64_t>(0, packingLowerBound(ranges) * 21 / 20);
  RC_ASSERT(isSound(ranges, pack(ranges, target, 100)));
}

RC_GTEST_PROP(Packing, IsDeterministic, ()) {
  const auto ranges = randomRanges();
  RC_ASSERT(pack(ranges).addresses == pack(ranges).addresses);
}

TEST(Packing, ReachesTheBoundOnAChain) {
  // Each feature map is live while it and the next one are written.
  std::vector<LiveRange> ranges;
  ranges.reserve(30);
  for (int i = 0; i < 30; ++i) ranges.push_back({1000 + 37 * (i % 7), i, i + 1});
  EXPECT_EQ(pack(ranges).bytes, packingLowerBound(ranges));
}

RC_GTEST_PROP(Packing, APackerMatchesPack, ()) {
  const auto ranges = randomRanges();
  Packer packer;
  for (int i = 0; i < 2; ++i)
    RC_ASSERT(packer.pack(ranges, 0, 200).addresses == pack(ranges, 0, 200).addresses);
}

TEST(Packing, APackerStopsSearchingAfterItsLimit) {
  // Sizes that never reach the bound: on its own, each packing would use all of its attempts.
  Packer packer;
  int64_t searched = 0, swept = 0;
  for (int64_t round = 0; round < 8; ++round) {
    std::vector<LiveRange> ranges;
    for (int i = 0; i < 1000; ++i) {
      const int first = i * 7919 % 1000;
      ranges.push_back({1 + (i * 104729 + round * 31) % 5000, first, first + i * 31 % 40});
    }
    const Packing packing = packer.pack(ranges, 0, 2000);
    ASSERT_TRUE(packing.bytes >= packingLowerBound(ranges));
    const Packing first = pack(ranges, 0, 0);
    ++(packing.addresses == first.addresses ? swept : searched);
  }
  EXPECT_GT(searched, 0);
  EXPECT_GT(swept, 0);
}

TEST(Packing, ReusesDeadBuffers) {
  // Two floats quantized to bytes, added, dequantized: the chain of a small delegated program.
  const std::vector<LiveRange> ranges = {{4, 0, 1}, {4, 0, 2}, {1, 1, 3}, {1, 2, 3}, {1, 3, 4}, {4, 4, 5}};
  EXPECT_EQ(pack(ranges, 0, 0).bytes, 48);
  EXPECT_EQ(packingLowerBound(ranges), 48);
}

TEST(Packing, PlacesLargeBuffersBeforeSmallOnes) {
  EXPECT_EQ(pack(std::vector<LiveRange>{{16, 0, 1}, {1000, 1, 2}, {16, 2, 3}}, 0, 0).bytes, 1024);
}

TEST(Packing, EmptyBuffersCostNothing) {
  EXPECT_EQ(pack(std::vector<LiveRange>{{0, 0, 9}, {0, 3, 4}}).bytes, 0);
}

TEST(Packing, HugeBuffersHaveABoundedArea) {
  const LiveRange huge{int64_t{1} << 58, 0, 1 << 20};
  EXPECT_EQ(areaOf(huge), int64_t{1} << 60);
  EXPECT_EQ(areaOf({100, 3, 5}), 300);
  EXPECT_EQ(pack(std::vector<LiveRange>{huge, {16, 0, 2}}, 0, 100).bytes, huge.bytes + 16);
}

TEST(Packing, OfNothingIsEmpty) {
  EXPECT_EQ(pack({}).bytes, 0);
}

}  // namespace
}  // namespace carina
