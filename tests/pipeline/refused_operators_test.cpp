// SPDX-License-Identifier: Apache-2.0
// carina ops on networks that are refused as a whole: the table is still printed, with the reasons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/operators.hpp"
#include "report/operators.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

using testing::HasSubstr;

Result<OperatorList> listed(const std::filesystem::path& model, const std::string& target) {
  Options options;
  options.model = model;
  options.target = target;
  return listOperators(options);
}

TEST(RefusedOperators, ANetworkThatCannotBeReadIsListed) {
  const auto list = require(listed(test::dataDir() / "odd/custom.pt2", "ethos-u55-128"));
  ASSERT_EQ(list.problems.size(), 1u);
  EXPECT_EQ(list.count(Place::Refused), 1u);
  EXPECT_EQ(list.count(Place::Refused) + list.count(Place::Unknown), list.operators.size());
  const auto refused = std::find_if(list.operators.begin(), list.operators.end(),
                                    [](const OperatorPlace& op) { return op.place == Place::Refused; });
  ASSERT_EQ(refused->refusals.size(), 1u);
  EXPECT_THAT(refused->refusals[0].reason, HasSubstr("is a custom operator"));
  const std::string text = report::operatorsText(list);
  EXPECT_THAT(text, HasSubstr("refused"));
  EXPECT_THAT(text, HasSubstr("why the network is refused, and what would change it\n"));
  EXPECT_THAT(text, HasSubstr("1 of them refused: the network does not compile\n"));
  EXPECT_THAT(report::operatorsJson(list), HasSubstr("\"runs_on\": \"refused\""));
}

TEST(OperatorList, OneConversionIsNamedInTheSingular) {
  OperatorList list;
  list.conversions = 1;
  EXPECT_THAT(report::operatorsText(list), HasSubstr("for 1 conversion (quantize"));
  list.conversions = 2;
  EXPECT_THAT(report::operatorsText(list), HasSubstr("for 2 conversions (quantize"));
}

TEST(RefusedOperators, ErrorsThatNameNoOperatorStayErrors) {
  EXPECT_FALSE(listed("nowhere.pt2", "ethos-u55-128").ok());
  EXPECT_FALSE(listed(test::modelFile("digits8.pt2"), "ethos-u99").ok());
}

TEST(RefusedOperators, ATosaGraphIsListed) {
  test::TempDir folder;
  Options options;
  options.model = test::modelFile("digits8.pt2");
  options.calibration = test::modelFile("digits8.npz");
  options.target = "ethos-u55-128";
  const auto built = require(build(options));
  ASSERT_TRUE(writeOutput(built, folder / "digits8.tosa").ok());
  const auto list = require(listed(folder / "digits8.tosa", "ethos-u55-128"));
  EXPECT_TRUE(list.wholly);
  EXPECT_TRUE(list.problems.empty());
  EXPECT_EQ(list.count(Place::Npu), list.operators.size());
  EXPECT_FALSE(listed(folder / "digits8.tosa", "cpu").ok());
}

TEST(RefusedOperators, OperatorsOfATosaGraphThatTheTargetLacks) {
  CARINA_NEED_FIXTURES(fixtures);
  const auto list = require(listed(fixtures / "vectors/tosa/bitwise_and_0_i8.tosa", "ethos-u55-128"));
  EXPECT_EQ(list.count(Place::Refused), list.problems.size());
  const auto taken = require(listed(fixtures / "vectors/tosa/bitwise_and_0_i8.tosa", "ethos-u85-256"));
  EXPECT_TRUE(taken.wholly);
}

}  // namespace
}  // namespace carina::pipeline
