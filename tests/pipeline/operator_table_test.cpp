// SPDX-License-Identifier: Apache-2.0
// docs/operators.md matches the code.
#include "pipeline/operator_table.hpp"

#include <gtest/gtest.h>

#include "pipeline/operator_cases.hpp"
#include "report/operators.hpp"
#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::pipeline {
namespace {

TEST(OperatorTable, MatchesTheDocumentation) {
  const auto table = require(operatorTable({"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"}));
  const std::string page =
      test::contentsOf(test::dataDir().parent_path().parent_path() / "docs" / "operators.md");
  EXPECT_EQ(report::operatorTableMarkdown(table), page) << "run 'make operators' and review the changes";
}

TEST(OperatorTable, CoversCommonOperators) {
  const auto cases = require(operatorCases());
  EXPECT_GT(cases.size(), 150u);
}

}  // namespace
}  // namespace carina::pipeline
