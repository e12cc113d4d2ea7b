// SPDX-License-Identifier: Apache-2.0
// Every archive of the larger suites is read, or refused with the reason listed here.
#include "support/fixtures.hpp"

#include <gtest/gtest.h>

#include <map>

#include "pt2/exported_program.hpp"
#include "support/require.hpp"

namespace carina::pt2 {
namespace {

namespace fs = std::filesystem;

void expectAllReadable(const fs::path& folder, const std::string& suffix, size_t atLeast) {
  const auto files = test::filesIn(folder, suffix);
  ASSERT_GE(files.size(), atLeast) << folder;
  for (const fs::path& file : files) {
    const auto program = require(readExportedProgram(file));
    EXPECT_GT(program.graph.numNodes() + program.graph.outputs().size(), 0u) << file;
    EXPECT_TRUE(program.warnings.empty()) << program.warnings.front().str();
    for (const auto* node : program.graph.nodes()) EXPECT_FALSE(node->def().has(ir::kInPlace)) << file;
  }
}

TEST(Fixtures, OperatorsAreRead) {
  CARINA_NEED_FIXTURES(fixtures);
  expectAllReadable(fixtures / "fixtures" / "ops", ".pt2", 180);
}
TEST(Fixtures, NetworksAreRead) {
  CARINA_NEED_FIXTURES(fixtures);
  expectAllReadable(fixtures / "fixtures" / "models", ".pt2", 10);
}
TEST(Fixtures, ArchivesOfTorch26AreRead) {
  CARINA_NEED_FIXTURES(fixtures);
  expectAllReadable(fixtures / "fixtures" / "ops_torch26", ".pt2", 4);
}
TEST(Fixtures, FloatAndQuantizedGraphsOfExecutorchAreRead) {
  CARINA_NEED_FIXTURES(fixtures);
  expectAllReadable(fixtures / "vectors" / "executorch", ".pt2", 100);
}

TEST(Fixtures, SpecialProgramsAreReadOrRefusedWithTheRightReason) {
  CARINA_NEED_FIXTURES(fixtures);
  const std::map<std::string, std::string> refusals{
      {"bn_train", "batch_norm (module b): batch norm in training mode"},
      {"bn_train_dec", "_native_batch_norm_legit_functional (module b): batch norm in training mode"},
      {"custom", "twice: myns.twice.default is a custom operator"},
      {"dynamic", "input x: dimension 0 is dynamic: s77 from 2 to 64"},
      {"index", "index_1: the size of the result of aten.index.Tensor depends on the values"},
      {"item", "item: aten.item.default turns a tensor into a number"},
      {"two", "holds 2 programs: 'encode', 'decode'"},
  };
  const auto files = test::filesIn(fixtures / "fixtures" / "special", ".pt2");
  ASSERT_GE(files.size(), 30u);
  size_t refused = 0;
  for (const fs::path& file : files) {
    const auto program = readExportedProgram(file);
    const auto expected = refusals.find(file.stem().string());
    if (expected == refusals.end()) {
      EXPECT_TRUE(program.ok()) << program.error().str();
      continue;
    }
    ASSERT_FALSE(program.ok()) << file;
    ++refused;
    EXPECT_NE(program.error().str().find(expected->second), std::string::npos) << program.error().str();
    for (const Diagnostic& diagnostic : program.error().diagnostics()) {
      EXPECT_EQ(diagnostic.file, file.string());
      EXPECT_FALSE(diagnostic.remedy.empty()) << diagnostic.str();
    }
  }
  EXPECT_EQ(refused, refusals.size());
}

TEST(Fixtures, EachOfSeveralProgramsCanBeChosen) {
  CARINA_NEED_FIXTURES(fixtures);
  const fs::path file = fixtures / "fixtures" / "special" / "two.pt2";
  const auto names = require(modelNames(file));
  ASSERT_EQ(names.size(), 2u);
  for (const std::string& name : names) {
    ReadOptions options;
    options.model = name;
    const auto program = require(readExportedProgram(file, options));
    EXPECT_EQ(program.model, name);
  }
}

TEST(Fixtures, ConstantInputsKeepTheirPlace) {
  CARINA_NEED_FIXTURES(fixtures);
  const auto program = require(readExportedProgram(fixtures / "fixtures" / "special" / "kwargs.pt2"));
  ASSERT_EQ(program.inputs.size(), 6u);
  EXPECT_EQ(program.inputs[1].constant, "3");
  EXPECT_EQ(program.inputs[2].constant, "True");
  EXPECT_EQ(program.inputs[3].constant, "'hi'");
  EXPECT_EQ(program.inputs[4].constant, "1.5");
  EXPECT_EQ(program.graph.inputs().size(), 2u);
  ASSERT_EQ(program.outputs.size(), 5u);
  EXPECT_EQ(program.outputs[1].constant, "3");
  EXPECT_EQ(program.outputs[4].graphOutput, 2u);
}

TEST(Fixtures, TiedWeightsAreOneValue) {
  CARINA_NEED_FIXTURES(fixtures);
  const auto program = require(readExportedProgram(fixtures / "fixtures" / "special" / "tied.pt2"));
  ASSERT_EQ(program.warnings.size(), 1u);
  EXPECT_EQ(program.warnings[0].place, "'cnt'");
  size_t read = 0;
  for (const StateTensor& state : program.state) read += state.value != nullptr;
  EXPECT_GT(read, 5u);
}

}  // namespace
}  // namespace carina::pt2
