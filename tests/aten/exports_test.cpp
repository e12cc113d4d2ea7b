// SPDX-License-Identifier: Apache-2.0
// A pick of recorded one-operator exports that travels with the repository; fixtures_test.cpp runs all of
// them.
#include "aten/compare.hpp"
#include "support/fixtures.hpp"

namespace carina::aten::test {
namespace {

TEST(AtenExports, GiveTheirRecordedResults) {
  const auto archives = carina::test::filesIn(carina::test::dataDir() / "aten", ".pt2");
  ASSERT_GE(archives.size(), 40u);
  for (const auto& archive : archives) checkExport(archive);
}

}  // namespace
}  // namespace carina::aten::test
