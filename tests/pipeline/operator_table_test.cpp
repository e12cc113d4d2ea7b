// SPDX-License-Identifier: Apache-2.0
// docs/operators.md says what the code does.
#include "pipeline/operator_table.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "pipeline/operator_cases.hpp"
#include "report/operators.hpp"
#include "support/fixtures.hpp"

namespace carina::pipeline {
namespace {

TEST(OperatorTable, IsWhatTheDocumentationShows) {
  const auto table = operatorTable({"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"});
  ASSERT_TRUE(table.ok()) << table.error().str();
  std::ifstream file(test::dataDir().parent_path().parent_path() / "docs" / "operators.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(report::operatorTableMarkdown(*table), page)
      << "run 'make operators' and look at what has changed";
}

TEST(OperatorTable, CoversTheUsualOperators) {
  const auto cases = operatorCases();
  ASSERT_TRUE(cases.ok()) << cases.error().str();
  EXPECT_GT(cases->size(), 150u);
}

}  // namespace
}  // namespace carina::pipeline
