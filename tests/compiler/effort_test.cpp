// SPDX-License-Identifier: Apache-2.0
// Search effort, and how far the schedules found are from a lower bound on cycles.
#include <gtest/gtest.h>

#include <string_view>

#include "compiler/cycle_bound.hpp"
#include "compiler/program_runner.hpp"
#include "compiler/tosa_graphs.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

/// Layers with more weights than fast memory holds at once, with tables, and an addition.
ir::Graph network() {
  TosaBuilder b;
  ir::Value* value = b.input(DType::Int8, {1, 12, 12, 16});
  for (const int64_t depth : {32, 64, 96}) {
    value = b.rescale(b.conv(value, depth, {3, 3}), DType::Int8, 1 << 30, 40);
    value = b.table(value);
  }
  ir::Value* sum = b.make<tosa::Add>(b.rescale(value, DType::Int32, 1 << 30, 20),
                                     b.rescale(value, DType::Int32, 1 << 30, 21));
  return b.finish({b.rescale(sum, DType::Int8, 1 << 30, 40)});
}

compiler::CompiledProgram compiled(const ir::Graph& graph, const char* target, const char* mode, int effort) {
  const auto machine = require(npu::makeMachine(target, "", mode));
  compiler::Options options;
  options.effort = effort;
  return require(compiler::compile(graph, machine, options));
}

TEST(Effort, IsDeterministicAndKeepsTheOutputs) {
  const ir::Graph graph = network();
  const auto inputs = randomInputs(graph, 7);
  for (const char* target : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
    std::vector<Tensor> expected;
    for (const int effort : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << target << ", effort " << effort);
      const auto program = compiled(graph, target, "Shared_Sram", effort);
      const auto again = compiled(graph, target, "Shared_Sram", effort);
      EXPECT_EQ(program.commands, again.commands);
      EXPECT_EQ(program.constants, again.constants);
      auto run = require(runProgram(program, inputs, true));
      EXPECT_TRUE(run.findings.empty());
      if (expected.empty()) expected = run.outputs;
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(std::ranges::equal(run.outputs[i].bytes(), expected[i].bytes()));
    }
  }
}

TEST(Effort, CostsNeitherCyclesNorBytes) {
  const ir::Graph graph = network();
  for (const char* target : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
    SCOPED_TRACE(target);
    const auto little = compiled(graph, target, "Shared_Sram", 1);
    const auto normal = compiled(graph, target, "Shared_Sram", 2);
    const auto much = compiled(graph, target, "Shared_Sram", 3);
    EXPECT_LE(normal.cycles, little.cycles);
    EXPECT_LE(much.cycles, normal.cycles);
    EXPECT_LE(normal.constants.size(), little.constants.size());
    EXPECT_LE(much.constants.size(), normal.constants.size());
  }
}

/// Pairs of a depthwise and a 1x1 convolution, with more channels in each.
ir::Graph separable() {
  TosaBuilder b;
  ir::Value* value = b.input(DType::Int8, {1, 16, 16, 32});
  for (const int64_t depth : {32, 64, 96, 128, 128, 160}) {
    value = b.rescale(b.depthwise(value, {3, 3}, {1, 1}, {1, 1, 1, 1}), DType::Int8, 1 << 30, 38);
    value = b.rescale(b.conv(value, depth, {1, 1}), DType::Int8, 1 << 30, 38);
    if (depth == 96) value = b.maxPool(value, {2, 2}, {2, 2}, {0, 0, 0, 0});
  }
  return b.finish({value});
}

/// Where transfers that overlap kernels pay off, the fast memory that plans leave for them decides, not only
/// how plans rank if transfers wait.
TEST(Effort, CostsNoCyclesWhereTransfersTakeTurns) {
  const ir::Graph graph = separable();
  for (const char* target : {"ethos-u65-512", "ethos-u85-128", "ethos-u85-512", "ethos-u85-2048"}) {
    for (const char* mode : {"Shared_Sram", "Dedicated_Sram_384KB"}) {
      SCOPED_TRACE(testing::Message() << target << ", " << mode);
      const auto normal = compiled(graph, target, mode, 2).cycles;
      const auto quick = compiled(graph, target, mode, 1).cycles;
      EXPECT_LE(normal, quick + quick / 200);  // less memory is worth that much
      EXPECT_LE(compiled(graph, target, mode, 3).cycles, normal);
    }
  }
}

TEST(CycleBound, IsNotAboveTheCyclesOfAnyProgram) {
  const ir::Graph graph = network();
  for (const char* target : {"ethos-u55-32", "ethos-u55-256", "ethos-u65-256", "ethos-u65-512",
                             "ethos-u85-128", "ethos-u85-512", "ethos-u85-2048"}) {
    for (const char* mode : {"Sram_Only", "Shared_Sram"}) {
      SCOPED_TRACE(testing::Message() << target << ", " << mode);
      const auto program = compiled(graph, target, mode, 2);
      const auto bound = compiler::cycleBound(program);
      ASSERT_TRUE(bound.has_value());
      EXPECT_LE(bound->total(), program.cycles);
      // Each MAC unit computes at most one MAC per cycle.
      EXPECT_GE(bound->engine, program.macs / program.machine.target->macs);
    }
  }
}

/// Layers bound by the transfer of their weights: some weights are copied while others are read in place,
/// through one port.
TEST(CycleBound, HoldsForProgramsBoundByWeights) {
  TosaBuilder b;
  ir::Value* value = b.input(DType::Int8, {1, 1, 1, 784});
  for (const int64_t depth : {600, 300, 500, 200, 400, 100})
    value = b.rescale(b.conv(value, depth, {1, 1}), DType::Int8, 1 << 30, 40);
  const ir::Graph graph = b.finish({value});
  for (const char* target : {"ethos-u55-64", "ethos-u55-128", "ethos-u65-256", "ethos-u85-256"}) {
    for (const char* mode : {"Shared_Sram", "Dedicated_Sram_384KB"}) {
      if (std::string_view(target).starts_with("ethos-u55") && std::string_view(mode) != "Shared_Sram")
        continue;
      for (const int effort : {1, 2, 3}) {
        SCOPED_TRACE(testing::Message() << target << ", " << mode << ", --effort " << effort);
        const auto program = compiled(graph, target, mode, effort);
        const auto bound = compiler::cycleBound(program);
        ASSERT_TRUE(bound.has_value());
        // Each transfer is rounded down to a cycle.
        EXPECT_LE(bound->total(), program.cycles + static_cast<npu::Cycles>(program.operations.size()));
      }
    }
  }
}

TEST(CycleBound, IsSetByTheMemoryThatHoldsTheWeights) {
  TosaBuilder b;
  const ir::Graph graph = b.finish(
      {b.rescale(b.conv(b.input(DType::Int8, {1, 1, 1, 512}), 512, {1, 1}), DType::Int8, 1 << 30, 40)});
  const auto program = compiled(graph, "ethos-u55-256", "Shared_Sram", 2);
  const auto bound = compiler::cycleBound(program);
  ASSERT_TRUE(bound.has_value());
  const size_t flash = program.machine.memory.port(npu::Area::Constants);
  EXPECT_EQ(bound->total(), bound->ports[flash]);
  EXPECT_GT(bound->total(), bound->engine);
}

}  // namespace
}  // namespace carina::test
