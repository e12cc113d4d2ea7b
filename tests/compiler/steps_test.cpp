// SPDX-License-Identifier: Apache-2.0
// Small memories beyond cascades: layers over whole sequences computed in parts, results that overwrite the
// parts of a program input already read, and limits on dedicated caches.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/program_runner.hpp"
#include "compiler/schedule/split_steps.hpp"
#include "compiler/tosa_graphs.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

using compiler::CompiledProgram;
using compiler::Optimize;

constexpr int64_t kSteps = 12, kDepth = 40, kUnits = 32;

/// h = step(conv(x[t]) + conv(h)) for all t; the convolution of x is a single one for all steps.
ir::Graph dividedRecurrence() {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, kSteps, 1, kDepth});
  const auto wide = [&](ir::Value* value) { return b.rescale(value, DType::Int32, 1 << 30, 20); };
  ir::Value* all = b.rescale(b.conv(x, kUnits, {1, 1}), DType::Int8, 1 << 30, 38);
  ir::Value* hidden = nullptr;
  std::vector<ir::Value*> outputs;
  for (int64_t t = 0; t < kSteps; ++t) {
    ir::Value* part = b.slice(all, {0, t, 0, 0}, {1, 1, 1, kUnits});
    if (hidden) {
      ir::Value* kept = b.rescale(b.conv(hidden, kUnits, {1, 1}), DType::Int8, 1 << 30, 38);
      part = b.rescale(b.make<tosa::Add>(wide(part), wide(kept)), DType::Int8, 1 << 30, 40);
    }
    hidden = b.table(part);
    outputs.push_back(hidden);
  }
  return b.finish({b.concat(outputs, 1)});
}

npu::Machine machineOf(const char* target, const char* mode = "Sram_Only") {
  return require(npu::makeMachine(target, "", mode));
}

Result<CompiledProgram> compiled(const ir::Graph& graph, const char* target, const char* mode,
                                 const compiler::Options& options) {
  return compiler::compile(graph, machineOf(target, mode), options);
}

/// The number of operations other than transfers.
int64_t kernels(const CompiledProgram& program) {
  return std::count_if(program.operations.begin(), program.operations.end(),
                       [](const auto& operation) { return !operation.kind.starts_with("DMA"); });
}

TEST(Steps, AreSplitWhereMemoryIsShort) {
  const ir::Graph graph = dividedRecurrence();
  const auto inputs = randomInputs(graph, 3);
  for (const char* target :
       {"ethos-u55-32", "ethos-u55-128", "ethos-u65-512", "ethos-u85-128", "ethos-u85-1024"}) {
    for (const char* mode : {"Sram_Only", "Shared_Sram"}) {
      EXPECT_EQ(differences(graph, target, mode, inputs, true, Optimize::Size), "") << target;
      auto fast = require(compiled(graph, target, mode, {}));
      compiler::Options options;
      options.optimize = Optimize::Size;
      auto small = require(compiled(graph, target, mode, options));
      EXPECT_LE(small.arenaBytes, fast.arenaBytes) << target;
      EXPECT_EQ(small.arenaBytes, small.arenaBound);
      // If convolutions are chained to their readers, a step's input and result are live at the same time.
      if (machineOf(target).target->architecture().chains) continue;
      // The sums of only one step are live at a time, and the results overwrite the input.
      EXPECT_LE(small.arenaBytes + (kSteps - 2) * kUnits, fast.arenaBytes) << target;
      EXPECT_EQ(small.outputs[0].offset, small.inputs[0].offset);
      EXPECT_GE(kernels(small), kernels(fast) + kSteps - 1);
    }
  }
}

TEST(Steps, AreSplitNoFurtherThanALimitRequires) {
  const ir::Graph graph = dividedRecurrence();
  auto fast = require(compiled(graph, "ethos-u55-128", "Sram_Only", {}));
  compiler::Options options;
  options.optimize = Optimize::Size;
  auto small = require(compiled(graph, "ethos-u55-128", "Sram_Only", options));
  options.optimize = Optimize::Performance;
  for (options.arenaLimit = small.arenaBytes; options.arenaLimit <= fast.arenaBytes;
       options.arenaLimit += 64) {
    auto within = compiled(graph, "ethos-u55-128", "Sram_Only", options);
    ASSERT_TRUE(within.ok()) << options.arenaLimit << ": " << within.error().str();
    EXPECT_LE(within->arenaBytes, options.arenaLimit);
    EXPECT_LE(within->cycles, small.cycles);
    EXPECT_LE(within->operations.size(), small.operations.size());
  }
  options.arenaLimit = small.arenaBytes - 16;
  EXPECT_FALSE(compiled(graph, "ethos-u55-128", "Sram_Only", options).ok());
}

TEST(Steps, AreNotSplitIfTheWholeSequenceIsRead) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, kSteps, 1, kDepth});
  ir::Value* all = b.rescale(b.conv(x, kUnits, {1, 1}), DType::Int8, 1 << 30, 38);
  ir::Value* first = b.slice(all, {0, 0, 0, 0}, {1, 1, 1, kUnits});
  const ir::Graph graph = b.finish({all, b.table(first)});
  auto npu = require(compiler::lowerToNpu(graph, machineOf("ethos-u55-128")));
  EXPECT_EQ(compiler::splitSteps(npu, kSteps), 0);
}

TEST(CacheLimit, IsKept) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 24, 24, 32});
  ir::Value* y = x;
  for (int i = 0; i < 4; ++i)
    y = b.rescale(b.conv(y, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}), DType::Int8, 1 << 30, 40);
  const ir::Graph graph = b.finish({y});
  for (const char* target : {"ethos-u65-256", "ethos-u85-256"}) {
    auto free = require(compiled(graph, target, "Dedicated_Sram_384KB", {}));
    npu::Cycles before = free.cycles;
    ASSERT_GT(free.cacheBytes, 20000);
    for (const int64_t limit : {20000, 4096, 16}) {
      compiler::Options options;
      options.cacheLimit = limit;
      auto within = require(compiled(graph, target, "Dedicated_Sram_384KB", options));
      EXPECT_LE(within.cacheBytes, limit);
      EXPECT_GE(within.cycles, before);
      before = within.cycles;
    }
  }
}

}  // namespace
}  // namespace carina::test
