// SPDX-License-Identifier: Apache-2.0
// A selection of recorded one-operator exports that is part of the repository; fixtures_test.cpp runs all of
// them.
#include "aten/compare.hpp"
#include "support/fixtures.hpp"

namespace carina::aten::test {
namespace {

TEST(AtenExports, MatchTheirRecordedResults) {
  const auto archives = carina::test::filesIn(carina::test::dataDir() / "aten", ".pt2");
  ASSERT_GE(archives.size(), 40u);
  for (const auto& archive : archives) checkExport(archive);
}

}  // namespace
}  // namespace carina::aten::test
