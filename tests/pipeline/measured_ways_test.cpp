// SPDX-License-Identifier: Apache-2.0
// The paths that samples take through networks with control flow.
#include "pipeline/measured_ways.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "base/npy.hpp"
#include "pipeline/timed_profile.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

Profile profileOf(const std::string& network, const std::string& target) {
  const std::filesystem::path folder = test::dataDir() / "control";
  Options options;
  options.model = folder / (network + ".pt2");
  options.calibration = folder / (network + ".npz");
  options.target = target;
  return require(timedProfile(options, "", folder / (network + ".npz"))).profile;
}

TEST(MeasuredPaths, EverySampleTakesOneBranch) {
  const Profile profile = profileOf("experts", "ethos-u85-256");
  ASSERT_TRUE(profile.measured);
  ASSERT_EQ(profile.measured->cycles.size(), 4u);
  ASSERT_EQ(profile.measured->ways.size(), 1u);
  ASSERT_EQ(profile.measured->ways[0].size(), 1u);
  const PathCount ways = profile.measured->ways[0][0];
  EXPECT_EQ(ways.first + ways.second, 4);
  EXPECT_GT(ways.first, 0);
  EXPECT_GT(ways.second, 0);
  for (const npu::Cycles cycles : profile.measured->cycles) {
    EXPECT_GT(cycles, 0);
    EXPECT_LE(cycles, profile.longest);
  }
}

TEST(MeasuredPaths, ALoopConditionIsTestedOnceMoreThanTheLoopRuns) {
  const Profile profile = profileOf("refine", "ethos-u85-256");
  ASSERT_TRUE(profile.measured);
  ASSERT_EQ(profile.measured->ways.size(), 1u);
  ASSERT_EQ(profile.measured->ways[0].size(), 1u);
  const PathCount ways = profile.measured->ways[0][0];
  EXPECT_GT(ways.first, 4);
  EXPECT_EQ(ways.second, ways.first + static_cast<int64_t>(profile.measured->cycles.size()));
}

TEST(MeasuredPaths, PartsAreCountedWhereTheProgramBranches) {
  const Profile profile = profileOf("experts", "ethos-u55-256");
  ASSERT_TRUE(profile.measured);
  ASSERT_EQ(profile.measured->calls.size(), 4u) << "stem, two branches, head";
  EXPECT_EQ(profile.measured->calls[0], 4);
  EXPECT_EQ(profile.measured->calls[1] + profile.measured->calls[2], 4);
  EXPECT_EQ(profile.measured->calls[3], 4);
  for (const npu::Cycles cycles : profile.measured->cycles) EXPECT_LE(cycles, profile.longest);
}

TEST(MeasuredPaths, AreUnknownForFinishedPrograms) {
  Options options;
  options.model = test::modelFile("digits8.pt2");
  options.calibration = test::modelFile("digits8.npz");
  options.target = "ethos-u55-128";
  const auto built = require(build(options));
  const test::TempDir folder;
  ASSERT_TRUE(writeOutput(built, folder / "digits8.pte").ok());
  Options finished;
  finished.model = folder / "digits8.pte";
  const auto timed = timedProfile(finished, "", options.calibration);
  ASSERT_FALSE(timed.ok());
  EXPECT_EQ(timed.error().code(), Code::OptionDoesNotApply);
}

}  // namespace
}  // namespace carina::pipeline
