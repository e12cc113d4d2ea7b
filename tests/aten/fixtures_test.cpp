// SPDX-License-Identifier: Apache-2.0
// All recorded exports: one-operator modules, whole networks and archives of torch 2.6.
#include "support/fixtures.hpp"

#include "aten/compare.hpp"

namespace carina::aten::test {
namespace {

void checkFolder(const std::filesystem::path& folder, size_t atLeast) {
  const auto archives = carina::test::filesIn(folder, ".pt2");
  ASSERT_GE(archives.size(), atLeast);
  for (const auto& archive : archives) checkExport(archive);
}

TEST(AtenFixtures, OneOperatorModules) {
  CARINA_NEED_FIXTURES(root);
  checkFolder(root / "fixtures/ops", 184);
}
TEST(AtenFixtures, ArchivesOfTorch26) {
  CARINA_NEED_FIXTURES(root);
  checkFolder(root / "fixtures/ops_torch26", 4);
}
TEST(AtenFixtures, Networks) {
  CARINA_NEED_FIXTURES(root);
  checkFolder(root / "fixtures/models", 11);
}

}  // namespace
}  // namespace carina::aten::test
