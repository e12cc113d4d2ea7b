// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "ethosn/random_queries.hpp"
#include "support/child_process.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"

namespace carina::ethosn::test {
namespace {

std::vector<std::string> linesOf(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(in, line)) lines.push_back(line);
  return lines;
}

TargetQuery parsed(const std::string& line) {
  Result<TargetQuery> query = parseQuery(line);
  EXPECT_TRUE(query.ok()) << line;
  return std::move(query).value();
}

// Recorded answers of Arm's Support Library 25.03.
TEST(EthosNSupport, MatchesRecordedAnswers) {
  const std::vector<std::string> lines = linesOf(carina::test::dataDir() / "ethosn/support_answers.txt");
  ASSERT_GT(lines.size(), 300U);
  std::set<std::string> operators;
  for (const std::string& line : lines) {
    const size_t tab = line.find('\t');
    const TargetQuery query = parsed(line.substr(0, tab));
    operators.insert(std::string(operatorName(query.query.operation.op)));
    EXPECT_EQ(printAnswer(querySupport(query.target, query.query)), line.substr(tab + 1)) << line;
  }
  EXPECT_EQ(operators.size(), kOperators);
}

TEST(EthosNSupport, QueriesRoundTripThroughText) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::string line = printQuery(randomQuery(random));
    EXPECT_EQ(printQuery(parsed(line)), line);
  }
}

// CARINA_ETHOSN_SUPPORT_PROGRAM: a program that answers a file of queries, `PROGRAM QUERIES`, one line for
// each.
TEST(EthosNSupport, MatchesAnExternalLibrary) {
  const char* program = std::getenv("CARINA_ETHOSN_SUPPORT_PROGRAM");
  if (program == nullptr)
    GTEST_SKIP() << "set CARINA_ETHOSN_SUPPORT_PROGRAM to a program that answers queries";
  const carina::test::TempDir dir;
  const std::filesystem::path file = dir.path() / "queries.txt";
  std::vector<std::string> queries;
  queries.reserve(20000);
  std::mt19937 random(2024);
  for (int i = 0; i < 20000; ++i) queries.push_back(printQuery(randomQuery(random)));
  std::ofstream(file) << fmt::format("{}\n", fmt::join(queries, "\n"));
  const carina::test::ChildOutcome outcome = carina::test::runChild({program, file.string()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream answers(outcome.out);
  for (const std::string& line : queries) {
    std::string expected;
    ASSERT_TRUE(std::getline(answers, expected));
    const TargetQuery query = parsed(line);
    ASSERT_EQ(printAnswer(querySupport(query.target, query.query)), expected) << line;
  }
}

TEST(EthosNSupport, VariantsWithoutKernelsAnswerQueries) {
  const TargetQuery query =
      parsed("mean_xy target=ethos-n78-2tops-2ple sram=0 in=1x7x7x16:u8:nhwc:0/0.5 oq=0/1");
  EXPECT_TRUE(querySupport(query.target, query.query));
  EXPECT_FALSE(requireKernels(*query.target.variant));
}

}  // namespace
}  // namespace carina::ethosn::test
