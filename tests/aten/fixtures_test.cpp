// SPDX-License-Identifier: Apache-2.0
// All recorded exports: one-operator modules, whole networks and archives of torch 2.6.
#include "support/fixtures.hpp"

#include <limits>
#include <set>

#include "aten/compare.hpp"
#include "support/require.hpp"

namespace carina::aten::test {
namespace {

void checkFolder(const std::filesystem::path& folder, size_t atLeast) {
  const auto archives = carina::test::filesIn(folder, ".pt2");
  ASSERT_GE(archives.size(), atLeast);
  for (const auto& archive : archives) checkExport(archive);
}

/// Equal except for few elements, which differ by at most one step; a step is the smallest distance between
/// distinct values.
::testing::AssertionResult nearlySame(const Tensor& actual, const Tensor& expected) {
  if (actual.shape() != expected.shape()) return ::testing::AssertionFailure() << "shapes differ";
  std::set<double> levels;
  for (int64_t i = 0; i < expected.numElements(); ++i) levels.insert(expected.realAt(i));
  double step = std::numeric_limits<double>::infinity();
  for (auto it = levels.begin(); it != levels.end() && std::next(it) != levels.end(); ++it) {
    step = std::min(step, *std::next(it) - *it);
  }
  int64_t different = 0;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    const double distance = std::abs(actual.realAt(i) - expected.realAt(i));
    if (distance > step * 1.001)
      return ::testing::AssertionFailure() << "element " << i << " is " << distance / step << " steps off";
    different += distance > step * 0.001;
  }
  if (different * 200 > expected.numElements())
    return ::testing::AssertionFailure() << different << " elements differ";
  return ::testing::AssertionSuccess();
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

/// Graphs from which ExecuTorch's Arm flow started, before and after quantization. PyTorch's convolutions
/// round slightly differently, so values near a rounding boundary may differ by one quantum: at most half a
/// percent of all values.
TEST(AtenFixtures, FloatAndQuantizedGraphsOfExecutorch) {
  CARINA_NEED_FIXTURES(root);
  const auto archives = carina::test::filesIn(root / "vectors/executorch", "qdq.pt2");
  ASSERT_GE(archives.size(), 40u);
  for (const auto& archive : archives) {
    SCOPED_TRACE(archive.string());
    auto recorded = require(readNpz(archive.parent_path() / "io.npz"));
    const std::vector<Tensor> inputs = arraysNamed(recorded, "input");
    for (const bool quantized : {false, true}) {
      auto program =
          require(pt2::readExportedProgram(quantized ? archive : archive.parent_path() / "float.pt2"));
      const std::vector<Tensor> expected = arraysNamed(recorded, quantized ? "output" : "float_output");
      ASSERT_FALSE(expected.empty());
      auto outputs = require(execute(program.graph, inputs));
      ASSERT_EQ(outputs.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        if (quantized) {
          EXPECT_TRUE(nearlySame(outputs[i], expected[i]));
        } else {
          EXPECT_TRUE(close(outputs[i], expected[i]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace carina::aten::test
