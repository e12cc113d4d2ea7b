// SPDX-License-Identifier: Apache-2.0
// What is fused and what is not, seen in the printed npu graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/legalize.hpp"
#include "compiler/npu_ir.hpp"
#include "compiler/tosa_graphs.hpp"
#include "ir/printer.hpp"

namespace carina::test {
namespace {

std::vector<std::string> operations(const ir::Graph& tosa, const char* target) {
  auto machine = npu::makeMachine(target, "", "");
  EXPECT_TRUE(machine.ok());
  auto graph = compiler::legalize(tosa, *machine->target);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().str());
  std::vector<std::string> names;
  if (!graph.ok()) return names;
  for (const ir::Node* node : graph->nodes()) {
    if (npu_ir::hasOutputStage(node)) names.emplace_back(node->opName());
  }
  return names;
}

using testing::ElementsAre;

TEST(Legalize, RescaleClampAndTableJoinTheConvolution) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  ir::Value* y = b.table(b.clamp(b.rescalePerChannel(b.conv(x, 8, {3, 3}), DType::Int8, 40, 3), -100, 100));
  const ir::Graph graph = b.finish({y});
  EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.CONV"));
  EXPECT_THAT(operations(graph, "ethos-u85-256"), ElementsAre("npu.CONV"));
}

TEST(Legalize, AValueThatOthersSeeIsNotFusedAway) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  ir::Value* acc = b.conv(x, 8, {3, 3});
  const ir::Graph graph = b.finish({b.rescale(acc, DType::Int8, 1 << 30, 40), acc});
  EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.CONV", "npu.ELEMENTWISE"));
}

TEST(Legalize, SaturationIsNotFusedAway) {
  // The largest number that NEGATE gives is 32767, whatever scale comes after it.
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int16, {1, 8, 8, 4});
  ir::Value* none = b.scalar(DType::Int16, 0);
  ir::Value* y = tosa::Negate::create(b.builder(), x, none, none).output();
  const ir::Graph graph = b.finish({b.rescale(y, DType::Int16, 1518500250, 32)});
  EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.ELEMENTWISE", "npu.POOL"));
  EXPECT_THAT(operations(graph, "ethos-u85-256"), ElementsAre("npu.ELEMENTWISE", "npu.POOL"));
}

TEST(Legalize, QuantizedAddIsOneOperation) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  ir::Value* a = b.rescale(x, DType::Int32, 1518500250, 12, -17);
  ir::Value* c = b.rescale(x, DType::Int32, 1 << 30, 11, 5);
  const ir::Graph graph =
      b.finish({b.rescale(b.binary<tosa::Add>(a, c), DType::Int8, 1431655728, 50, 0, -32)});
  EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.ELEMENTWISE"));
  EXPECT_THAT(operations(graph, "ethos-u85-256"), ElementsAre("npu.ELEMENTWISE"));
}

TEST(Legalize, OperandScalesThatU55LacksTakeThirtyTwoBitSteps) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int16, {1, 8, 8, 4});
  ir::Value* a = b.rescale(x, DType::Int32, 1518500250, 20, 0);
  ir::Value* c = b.rescale(x, DType::Int32, 1 << 30, 19, 0);
  const ir::Graph graph =
      b.finish({b.rescale(b.binary<tosa::Add>(a, c), DType::Int16, 1431655728, 43, 0, 0)});
  // Each operand widened and scaled, the sum, and its scaling.
  EXPECT_EQ(operations(graph, "ethos-u55-128").size(), 6u);
  EXPECT_THAT(operations(graph, "ethos-u85-256"), ElementsAre("npu.ELEMENTWISE"));
}

TEST(Legalize, ReshapeSliceAndConcatCostNothing) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  ir::Value* a = b.clamp(b.slice(x, {0, 0, 0, 0}, {1, 4, 8, 4}), -5, 5);
  ir::Value* c = b.clamp(b.slice(x, {0, 4, 0, 0}, {1, 4, 8, 4}), -7, 7);
  const ir::Graph graph = b.finish({b.concat({b.reshape(a, {1, 4, 8, 4}), c}, 1)});
  EXPECT_EQ(operations(graph, "ethos-u55-128").size(), 2u);
}

TEST(Legalize, AveragePoolKeepsZeroPointsAndTakesNoScale) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  const ir::Graph graph = b.finish(
      {b.rescale(b.averagePool(x, {2, 2}, {2, 2}, {0, 0, 0, 0}, 9), DType::Int8, 1518500250, 31, 9, 3)});
  EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.POOL", "npu.POOL"));
}

}  // namespace
}  // namespace carina::test
