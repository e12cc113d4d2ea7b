// SPDX-License-Identifier: Apache-2.0
// docs/operators.md says what the code does.
#include "pipeline/operator_table.hpp"

#include <gtest/gtest.h>

#include "pipeline/operator_cases.hpp"
#include "report/operators.hpp"
#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::pipeline {
namespace {

TEST(OperatorTable, IsWhatTheDocumentationShows) {
  const auto table = require(operatorTable({"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"}));
  const std::string page =
      test::contentsOf(test::dataDir().parent_path().parent_path() / "docs" / "operators.md");
  EXPECT_EQ(report::operatorTableMarkdown(table), page)
      << "run 'make operators' and look at what has changed";
}

TEST(OperatorTable, CoversTheUsualOperators) {
  const auto cases = require(operatorCases());
  EXPECT_GT(cases.size(), 150u);
}

}  // namespace
}  // namespace carina::pipeline
