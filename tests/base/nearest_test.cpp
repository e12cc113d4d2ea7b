// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace carina {
namespace {

TEST(Nearest, FindsWordsDespiteTypos) {
  const std::vector<std::string> options{"--calibrate", "--config", "--cpu-op", "--cpu-name"};
  EXPECT_EQ(nearestWord("--calibrat", options), "--calibrate");
  EXPECT_EQ(nearestWord("--confg", options), "--config");
  EXPECT_EQ(nearestWord("--CPU_OP", options), "--cpu-op");
}

TEST(Nearest, PicksTheNearestOfSeveral) {
  const std::vector<std::string> targets{"ethos-u55-32", "ethos-u55-128", "ethos-u65-256"};
  EXPECT_EQ(nearestWord("ethos-u55-127", targets), "ethos-u55-128");
  EXPECT_EQ(nearestWord("Ethos_U65_255", targets), "ethos-u65-256");
}

TEST(Nearest, CompletesAUniquePrefix) {
  const std::vector<std::string> options{"--calibrate", "--cpu-op", "--cpu-name"};
  EXPECT_EQ(nearestWord("--cal", options), "--calibrate");
  EXPECT_EQ(nearestWord("--cpu", options), "");
}

TEST(Nearest, FindsNothingForUnrelatedWords) {
  const std::vector<std::string> words{"int8", "run", "no"};
  EXPECT_EQ(nearestWord("frobnicate", words), "");
  EXPECT_EQ(nearestWord("xy", words), "");
  EXPECT_EQ(nearestWord("", words), "");
  EXPECT_EQ(nearestWord(std::string(100000, 'r'), words), "");
}

}  // namespace
}  // namespace carina
