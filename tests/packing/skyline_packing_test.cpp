// SPDX-License-Identifier: Apache-2.0
#include "packing/skyline_packing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "packing/packing_check.hpp"
#include "packing/random.hpp"

namespace carina {
namespace {

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

std::optional<Packing> packed(std::span<const LiveRange> ranges, int64_t enough, int64_t below,
                              size_t variations) {
  return packOnSkyline(ranges, enough, below, 16, variations);
}

/// Cuts `steps` steps of `bytes` bytes into `count` buffers that fill them without a gap.
std::vector<LiveRange> cutApart(int64_t bytes, int32_t steps, size_t count, int seed) {
  Random random;
  for (int i = 0; i < seed; ++i) random.below(2);
  std::vector<LiveRange> pieces = {{bytes, 0, steps - 1}};
  while (pieces.size() < count) {
    LiveRange& piece = pieces[random.below(pieces.size())];
    LiveRange other = piece;
    const auto duration = static_cast<size_t>(piece.last - piece.first + 1);
    const auto units = static_cast<size_t>(piece.bytes / 16);
    if (random.below(2) == 0 && duration > 1) {
      piece.last = piece.first + static_cast<int32_t>(random.below(duration - 1));
      other.first = piece.last + 1;
    } else if (units > 1) {
      piece.bytes = 16 * static_cast<int64_t>(1 + random.below(units - 1));
      other.bytes -= piece.bytes;
    } else {
      continue;
    }
    pieces.push_back(other);
  }
  return pieces;
}

constexpr int64_t kBytes = 64 * 1024;

/// How many of 20 memories that were cut into 60 buffers are filled again.
template <typename Pack>
int solved(const Pack& pack) {
  int count = 0;
  for (int seed = 0; seed < 20; ++seed) {
    const auto ranges = cutApart(kBytes, 400, 60, seed);
    EXPECT_EQ(packingLowerBound(ranges), kBytes);
    const Packing packing = pack(ranges);
    EXPECT_TRUE(isSound(ranges, packing));
    count += packing.bytes == kBytes ? 1 : 0;
  }
  return count;
}

TEST(SkylinePacking, FillsAMemoryWithoutAGap) {
  const int plain = solved([](const auto& ranges) { return *packed(ranges, kBytes, kAny, 0); });
  const int varied = solved([](const auto& ranges) { return *packed(ranges, kBytes, kAny, 100); });
  EXPECT_GE(plain, 8);
  EXPECT_GT(varied, plain);
}

TEST(SkylinePacking, SolvesWhatPlacementInOrdersDoesNot) {
  EXPECT_GE(solved([](const auto& ranges) { return pack(ranges, 0, 0); }), 8);
}

TEST(SkylinePacking, CountsTheVariationsThatItTries) {
  const auto ranges = cutApart(kBytes, 400, 60, 17);  // not solved
  size_t variations = 10;
  ASSERT_TRUE(packOnSkyline(ranges, kBytes, kAny, 16, variations));
  EXPECT_EQ(variations, 0u);
  variations = 10;
  ASSERT_TRUE(packOnSkyline(ranges, 2 * kBytes, kAny, 16, variations));
  EXPECT_EQ(variations, 10u);
}

TEST(SkylinePacking, FindsNothingBelowTheBound) {
  const auto ranges = cutApart(kBytes, 400, 60, 0);
  EXPECT_FALSE(packed(ranges, 0, kBytes, 5));
  EXPECT_TRUE(packed(ranges, 0, kBytes + 1, 5));
  EXPECT_FALSE(packed({}, 0, kAny, 5));
}

RC_GTEST_PROP(SkylinePacking, LiveBuffersNeverOverlap, ()) {
  std::vector<LiveRange> ranges;
  const int count = *rc::gen::inRange(1, 60);
  for (int i = 0; i < count; ++i) {
    const int first = *rc::gen::inRange(-1, 40);
    ranges.push_back({*rc::gen::inRange<int64_t>(0, 5000), first, first + *rc::gen::inRange(0, 20)});
  }
  const auto packing = packed(ranges, 0, kAny, 3);
  RC_ASSERT(packing.has_value());
  RC_ASSERT(isSound(ranges, *packing));
}

TEST(SkylinePacking, PlacesVeryManyBuffers) {
  std::vector<LiveRange> ranges;
  ranges.reserve(100040);
  for (int i = 0; i < 100000; ++i) ranges.push_back({1 + i * 31 % 4000, i, i + 2 + i * 7 % 5});
  for (int i = 0; i < 40; ++i) ranges.push_back({240, i, 100000});
  const auto packing = packed(ranges, 0, kAny, 0);
  ASSERT_TRUE(packing);
  EXPECT_LE(packing->bytes, packingLowerBound(ranges) * 3 / 2);
}

}  // namespace
}  // namespace carina
