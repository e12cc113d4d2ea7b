// SPDX-License-Identifier: Apache-2.0
#include "compiler/search/limits_to_try.hpp"

#include <gtest/gtest.h>

#include "compiler/compiler.hpp"
#include "compiler/tosa_graphs.hpp"

namespace carina::compiler {
namespace {

/// The number of limits tried for a program of `convolutions` 1x1 convolutions with 64 KiB of weights each,
/// in an arena of 64 KiB.
size_t triesFor(int convolutions) {
  test::TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 4, 4, 256});
  for (int i = 0; i < convolutions; ++i) x = b.rescale(b.conv(x, 256, {1, 1}), DType::Int8, 1 << 30, 38);
  const ir::Graph tosa = b.finish({x});
  const npu::Machine machine = require(npu::makeMachine("ethos-u65-512", "", "Dedicated_Sram"));
  const ir::Graph graph = require(lowerToNpu(tosa, machine));
  const Options options;
  Scheduler prepared(graph, machine, options, Ends::InArena);
  EXPECT_TRUE(prepared.prepare().ok());
  return limitsToTry(prepared, machine, options, 64 * 1024, 2).size();
}

TEST(LimitsToTry, AreFewerInNetworksOfManyPasses) {
  const size_t few = triesFor(8);
  EXPECT_GT(few, 100u);
  EXPECT_EQ(triesFor(64), few);
  EXPECT_LT(triesFor(2500) * 3, few);
}

}  // namespace
}  // namespace carina::compiler
