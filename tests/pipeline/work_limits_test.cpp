// SPDX-License-Identifier: Apache-2.0
// The work that a network may cause in the float executor follows from the size of its file.
#include "pipeline/work_limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "aten/ops.hpp"
#include "aten/work.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

using testing::HasSubstr;

/// x @ y of matrices with `side` rows and columns.
ir::Graph product(int64_t side) {
  ir::Graph graph;
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Float32, {side, side}}, "x");
  ir::Value* y = graph.addInput({DType::Float32, {side, side}}, "y");
  graph.setOutputs({aten::Matmul::create(b, x, y).output()});
  return graph;
}

TEST(WorkLimits, GrowWithMatrixProducts) {
  EXPECT_GT(aten::workOf(product(256)), 256.0 * 256 * 256 / 16);
  EXPECT_GT(aten::workOf(product(512)), 4 * aten::workOf(product(256)));
}

TEST(WorkLimits, NetworksOutOfProportionToTheirFileAreRefused) {
  const test::TempDir folder;
  Options options;
  options.model = folder / "network.pt2";
  std::ofstream(options.model) << "ten bytes.";
  options.target = "ethos-u85-256";
  options.madeUpSamples = true;
  std::vector<StageTime> times;
  const auto refused = frontOf(options, product(4096), times);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().str(), HasSubstr("runs in float"));
  EXPECT_THAT(refused.error().str(), HasSubstr("--trusted"));
  EXPECT_TRUE(frontOf(options, product(64), times).ok());
  EXPECT_EQ(budgetOf(options).most(), workFor(10));
  // The bytes of samples also count.
  options.calibration = options.model;
  EXPECT_EQ(budgetOf(options).most(), workFor(20));
  options.trusted = true;
  EXPECT_GT(budgetOf(options).most(), int64_t{1} << 60);
}

}  // namespace
}  // namespace carina::pipeline
