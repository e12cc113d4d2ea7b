// SPDX-License-Identifier: Apache-2.0
// The static RAM that a build needs, against a limit and against the boards.
#include "pipeline/memory_needs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carina::pipeline {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Two parts of 1,000 words of commands each.
Build buildOf(std::string_view target, std::string_view mode, int64_t arenaBytes) {
  Build build;
  build.options.model = "model.pt2";
  build.machine = *npu::makeMachine(target, "", mode, {});
  for (int i = 0; i < 2; ++i) {
    compiler::CompiledProgram part;
    part.arenaBytes = arenaBytes / (i + 1);
    part.cacheBytes = 300;
    part.constants.resize(100);
    part.commands.resize(1000);
    build.compiled.push_back(std::move(part));
  }
  return build;
}

TEST(SramNeeds, CountWhatTheMemoryModePlacesThere) {
  EXPECT_EQ(sramNeeds(buildOf("ethos-u55-128", "Shared_Sram", 5000)).str(), "arena 5000, cache 300");
  EXPECT_EQ(sramNeeds(buildOf("ethos-u55-128", "Sram_Only", 5000)).str(),
            "arena 5000, cache 300, constants and commands 8200");
  EXPECT_EQ(sramNeeds(buildOf("ethos-u65-256", "Dedicated_Sram", 5000)).str(), "cache 300");
  EXPECT_EQ(sramNeeds(Build()).total(), 0);
}

TEST(SramNeeds, MoreThanTheLimitIsAnError) {
  Build build = buildOf("ethos-u55-128", "Shared_Sram", 5000);
  build.options.sramLimit = 5300;
  EXPECT_TRUE(checkSram(build).ok());
  build.options.sramLimit = 5299;
  const Status status = checkSram(build);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().str(), HasSubstr("model.pt2: the program needs 5300 bytes of Sram"));
  EXPECT_THAT(status.error().str(), HasSubstr("the limit is 5299"));
  EXPECT_THAT(status.error().str(), HasSubstr("--arena-size"));
  EXPECT_TRUE(build.warnings.empty());
}

TEST(SramNeeds, ASmallerArenaIsARemedyOnlyWhereItHelps) {
  const auto errorWithin = [](Build build, int64_t limit) {
    build.options.sramLimit = limit;
    return checkSram(build).error().str();
  };
  EXPECT_THAT(errorWithin(buildOf("ethos-u55-128", "Sram_Only", 5000), 10'000), HasSubstr("--optimize size"));
  // Cache, constants and commands alone take 8,500 bytes.
  EXPECT_THAT(errorWithin(buildOf("ethos-u55-128", "Sram_Only", 5000), 8500),
              AllOf(HasSubstr("other memory modes"), Not(HasSubstr("--optimize size"))));
  Build small = buildOf("ethos-u55-128", "Sram_Only", 5000);
  small.options.optimize = compiler::Optimize::Size;
  EXPECT_THAT(errorWithin(std::move(small), 10'000), Not(HasSubstr("--optimize size")));
}

TEST(SramNeeds, MoreThanTheBoardHasIsAWarning) {
  constexpr int64_t kMiB = 1 << 20;
  const auto warnings = [](std::string_view target, std::string_view mode, int64_t arena) {
    Build build = buildOf(target, mode, arena);
    EXPECT_TRUE(checkSram(build).ok());
    return build.warnings;
  };
  EXPECT_TRUE(warnings("ethos-u55-128", "Shared_Sram", kMiB).empty());
  const auto tooLarge = warnings("ethos-u55-128", "Shared_Sram", 27 * kMiB);
  ASSERT_EQ(tooLarge.size(), 1u);
  EXPECT_THAT(tooLarge[0].message, HasSubstr("corstone-300 has 2097152"));
  EXPECT_EQ(warnings("ethos-u85-256", "Sram_Only", 5 * kMiB).size(), 1u);
  EXPECT_TRUE(warnings("ethos-u85-256", "Dedicated_Sram", 500 * kMiB).empty()) << "the arena is in Dram";
}

}  // namespace
}  // namespace carina::pipeline
