// SPDX-License-Identifier: Apache-2.0
// Runs of operators that work row by row, and their tiles.
#include "compiler/legalize/row_tiles.hpp"

#include <gtest/gtest.h>

#include <set>

#include "compiler/emit/emit.hpp"
#include "compiler/program_runner.hpp"
#include "compiler/search/search.hpp"
#include "compiler/tosa_graphs.hpp"
#include "support/require.hpp"
#include "tosa/interpreter.hpp"

namespace carina::test {
namespace {

using compiler::RowRun;
using compiler::RowTiles;
using compiler::RowTiling;

ir::Value* inInt32(TosaBuilder& b, ir::Value* x) {
  return b.rescale(x, DType::Int32, 1 << 30, 30);
}
ir::Value* inInt8(TosaBuilder& b, ir::Value* x, int64_t shift) {
  return b.rescale(x, DType::Int8, 1 << 30, shift);
}

/// x minus the mean of its row, squared: what norms begin with. The maps in between have 32 bits.
ir::Value* squaredDifference(TosaBuilder& b, ir::Value* x) {
  const auto axis = static_cast<int64_t>(x->shape().size()) - 1;
  ir::Value* wide = inInt32(b, x);
  ir::Value* sum = b.make<tosa::ReduceSum>(wide, axis);
  ir::Value* mean = b.rescale(sum, DType::Int32, 1 << 30, 36);
  ir::Value* difference = b.make<tosa::Sub>(wide, mean);
  ir::Value* square = b.mul(difference, difference);
  ir::Value* whole = b.make<tosa::ReduceSum>(square, axis);
  return inInt8(b, b.make<tosa::Add>(square, whole), 48);
}

/// A random row-wise operator on an int8 [1,T,C] value.
ir::Value* appendRowWise(TosaBuilder& b, ir::Value* x, uint64_t choice) {
  const int64_t rows = x->dim(1), depth = x->dim(2);
  switch (choice % 10) {
    case 0:
      return b.table(x);
    case 1:  // one constant for all rows
      return inInt8(b, b.make<tosa::Add>(inInt32(b, x), b.random(DType::Int32, {1, 1, depth})), 40);
    case 2:  // a constant for each row
      return inInt8(b, b.make<tosa::Add>(inInt32(b, x), b.random(DType::Int32, {1, rows, depth})), 40);
    case 3:
      return squaredDifference(b, x);
    case 4: {
      ir::Value* map = b.reshape(x, {1, 1, rows, depth});
      return b.reshape(b.rescalePerChannel(b.conv(map, 12, {1, 1}), DType::Int8, 42, 3), {1, rows, 12});
    }
    case 5: {
      ir::Value* half = b.slice(x, {0, 0, 0}, {1, rows, (depth + 1) / 2});
      return b.concat({b.table(half), x}, 2);
    }
    case 6: {  // heads
      ir::Value* heads = b.reshape(x, {rows, depth, 1});
      return b.reshape(b.transpose(heads, {0, 2, 1}), {1, rows, depth});
    }
    case 8: {  // a type that does not follow from the operands
      const std::vector<ir::Type> wide{{DType::Int32, x->shape()}};
      return inInt8(b, b.make<tosa::Cast>(x, wide), 31);
    }
    case 7:  // an invariant node
      return inInt8(b, b.make<tosa::Sub>(inInt32(b, x), inInt32(b, b.random(DType::Int8, {1, 1, 1}))), 31);
    default: {
      ir::Value* factors = b.random(DType::Int8, {1, depth, 7});
      ir::Value* zero = b.scalar(DType::Int8, 0);
      return inInt8(b, b.make<tosa::Matmul>(x, factors, zero, zero), 44);
    }
  }
}

TEST(RowTiles, AnyNumberOfTilesGivesTheSameResults) {
  size_t tiled = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    TosaBuilder b(seed);
    uint64_t dice = seed * 2654435761u;
    ir::Value* x = b.input(DType::Int8, {1, 2 + static_cast<int64_t>(seed % 19), 8});
    ir::Value* middle = x;
    for (int i = 0; i < 6; ++i) {
      dice = dice * 6364136223846793005u + 1442695040888963407u;
      x = appendRowWise(b, x, dice >> 40);
      if (i == 2) middle = x;
    }
    const ir::Graph graph = b.finish({x, middle});
    const auto inputs = randomInputs(graph, seed);
    const auto expected = require(tosa::interpret(graph, inputs));
    const RowTiling tiling(graph);
    const std::vector<RowRun> runs = tiling.runs();
    ASSERT_EQ(runs.size(), 1u) << seed;
    for (const int64_t count : {2, 3, 5}) {
      // The whole run, and the part of it without its first two nodes.
      for (const ir::Node* first :
           {runs[0].first, static_cast<const ir::Node*>(runs[0].first->next()->next())}) {
        const RowTiles tiles{first, runs[0].last, count};
        if (count > tiling.parts(first, runs[0].last)) continue;
        const ir::Graph result = tiling.tiled(std::span(&tiles, 1)).graph;
        EXPECT_GT(result.numNodes(), graph.numNodes());
        EXPECT_EQ(require(tosa::interpret(result, inputs)), expected) << "seed " << seed << ", " << count;
        ++tiled;
      }
    }
  }
  EXPECT_GT(tiled, 200u);
}

TEST(RowTiles, ARunEndsWhereARowNeedsOtherRows) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8});
  ir::Value* a = b.table(b.table(x));
  ir::Value* zero = b.scalar(DType::Int8, 0);
  ir::Value* product = b.make<tosa::Matmul>(a, a, zero, zero);  // every row with all rows
  ir::Value* wide = inInt32(b, inInt8(b, product, 40));
  const ir::Graph graph = b.finish({b.make<tosa::ReduceSum>(wide, 1)});  // over the rows
  const std::vector<RowRun> runs = RowTiling(graph).runs();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_TRUE(ir::isa<tosa::Table>(runs[0].first));
  EXPECT_TRUE(ir::isa<tosa::Table>(runs[0].last));
  EXPECT_EQ(runs[1].first, product->producer());
  EXPECT_EQ(runs[1].last, wide->producer());
}

TEST(RowTiles, AVectorHasNoRows) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 1, 1, 24});
  ir::Value* y = b.rescalePerChannel(b.conv(x, 16, {1, 1}), DType::Int8, 40, 0);
  const ir::Graph graph = b.finish({b.table(b.table(b.reshape(y, {1, 16})))});
  EXPECT_TRUE(RowTiling(graph).runs().empty());
}

TEST(RowTiles, RowsOfDifferentNumberHaveCommonParts) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 14, 14, 16});
  ir::Value* tokens = b.reshape(b.table(x), {1, 196, 16});
  const ir::Graph graph = b.finish({squaredDifference(b, tokens)});
  const RowTiling tiling(graph);
  const std::vector<RowRun> runs = tiling.runs();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(tiling.parts(runs[0].first, runs[0].last), 14);
  EXPECT_EQ(tiling.parts(runs[0].last, runs[0].last), 196);
}

TEST(RowTiles, AnExtractedRunHasTheValuesOfItsBorders) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 10, 8});
  ir::Value* first = b.table(x);
  ir::Value* second = squaredDifference(b, first);
  const ir::Graph graph = b.finish({b.table(second), first});
  const RowTiling tiling(graph);
  std::vector<const ir::Node*> copies;
  const ir::Graph part = tiling.extract(first->producer()->next(), second->producer(), copies);
  ASSERT_EQ(part.inputs().size(), 1u);
  ASSERT_EQ(part.outputs().size(), 1u);
  EXPECT_EQ(part.outputs()[0]->type, second->type);
  EXPECT_EQ(copies.size(), part.numNodes());
}

/// Cycles in tiles per hundred of those without, on an Ethos-U65-512 behind a cache, where the tiles also
/// take no more arena.
int64_t percentInTiles(const ir::Graph& graph) {
  const char* mode = "Dedicated_Sram_384KB";
  EXPECT_EQ(differences(graph, "ethos-u65-512", mode, randomInputs(graph, 1), false), "");
  const npu::Machine machine = require(npu::makeMachine("ethos-u65-512", "", mode));
  const ir::Graph whole = require(compiler::lowerToNpu(graph, machine));
  const auto untiled = require(compiler::schedule(whole, machine, {}));
  const auto program = require(compiler::compile(graph, machine, {}));
  EXPECT_LE(program.arenaBytes, untiled.arenaBytes);
  return program.cycles * 100 / compiler::streamCycles(untiled);
}

TEST(RowTiles, AreUsedWhereMapsExceedTheCache) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 197, 512});  // 394 KiB in 32 bits
  EXPECT_LT(percentInTiles(b.finish({squaredDifference(b, squaredDifference(b, x))})), 70);
}

TEST(RowTiles, AreUsedWhereTheMapBetweenTwoLayersExceedsTheCache) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 1, 128, 384});
  ir::Value* hidden = b.table(b.rescalePerChannel(b.conv(x, 4096, {1, 1}), DType::Int8, 42, 3));  // 512 KiB
  EXPECT_LT(percentInTiles(b.finish({b.rescalePerChannel(b.conv(hidden, 384, {1, 1}), DType::Int8, 44, 3)})),
            85);
}

TEST(RowTiles, MayContainOnlyTheSecondOfTwoLayers) {
  // In halves, both layers would read 2.3 MiB of weights from Dram twice.
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 1, 128, 768});
  ir::Value* hidden = b.table(b.rescalePerChannel(b.conv(x, 3072, {1, 1}), DType::Int8, 42, 3));
  hidden->name = "hidden";
  const ir::Graph graph = b.finish({b.rescalePerChannel(b.conv(hidden, 768, {1, 1}), DType::Int8, 44, 3)});
  const char* mode = "Dedicated_Sram_384KB";
  const npu::Machine machine = require(npu::makeMachine("ethos-u65-512", "", mode));
  const RowTiling tiling(graph);
  const RowRun run = tiling.runs().at(0);
  const auto halves = tiling.tiled(std::vector{RowTiles{run.first, run.last, 2}});
  const ir::Graph both = require(compiler::lowerToNpu(halves.graph, machine));
  const auto program = require(compiler::compile(graph, machine, {}));
  const auto inBoth = compiler::streamCycles(require(compiler::schedule(both, machine, {})));
  EXPECT_LT(program.cycles * 100 / inBoth, 95);
  EXPECT_EQ(differences(graph, "ethos-u65-512", mode, randomInputs(graph, 1), false), "");
}

TEST(RowTiles, ContainTilesOfNorms) {
  // A norm of 32-bit maps and two layers: in halves, of which the norm is in smaller tiles.
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 196, 768});
  ir::Value* norm = b.reshape(squaredDifference(b, squaredDifference(b, x)), {1, 1, 196, 768});
  norm->name = "norm";
  ir::Value* hidden = b.table(b.rescalePerChannel(b.conv(norm, 3072, {1, 1}), DType::Int8, 42, 3));
  const ir::Graph graph = b.finish({b.rescalePerChannel(b.conv(hidden, 768, {1, 1}), DType::Int8, 44, 3)});
  EXPECT_LT(percentInTiles(graph), 70);
  const npu::Machine machine = require(npu::makeMachine("ethos-u65-512", "", "Dedicated_Sram_384KB"));
  const auto program = require(compiler::compile(graph, machine, {}));
  std::set<int64_t> starts;
  for (const auto& value : program.values) {
    if (value.value == "norm") starts.insert(value.firstElement.value_or(0));
  }
  EXPECT_GT(starts.size(), 1u);
  for (const int64_t start : starts) EXPECT_EQ(start % 768, 0);
}

TEST(RowTiles, WhatInterruptsARunMovesBeforeIt) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    TosaBuilder b(seed);
    uint64_t dice = seed * 2654435761u;
    ir::Value* x = b.input(DType::Int8, {1, 6, 8});
    ir::Value* other = b.input(DType::Int8, {1, 6, 8});
    for (int i = 0; i < 6; ++i) {
      dice = dice * 6364136223846793005u + 1442695040888963407u;
      x = appendRowWise(b, x, dice >> 40);
      if ((dice >> 50) % 2 == 0) other = b.make<tosa::Reverse>(other, 1);
    }
    const ir::Graph graph = b.finish({b.concat({x, other}, 2)});
    const auto inputs = randomInputs(graph, seed);
    const ir::Graph ordered = compiler::withLongRuns(graph);
    EXPECT_EQ(ordered.numNodes(), graph.numNodes());
    EXPECT_EQ(RowTiling(ordered).runs().size(), 1u) << seed;
    EXPECT_EQ(require(tosa::interpret(ordered, inputs)), require(tosa::interpret(graph, inputs))) << seed;
  }
}

/// Attention of `heads` heads over `tokens` tokens. The values are transposed after the scores are computed.
ir::Graph attention(int64_t heads, int64_t tokens, int64_t depth) {
  TosaBuilder b;
  ir::Value* zero = b.scalar(DType::Int8, 0);
  ir::Value* q = b.input(DType::Int8, {heads, tokens, depth});
  ir::Value* k = b.input(DType::Int8, {heads, depth, tokens});
  ir::Value* v = b.input(DType::Int8, {tokens, heads, depth});
  ir::Value* scores = inInt8(b, b.make<tosa::Matmul>(q, k, zero, zero), 40);
  ir::Value* wide = inInt32(b, scores);
  ir::Value* sum = b.rescale(b.make<tosa::ReduceSum>(wide, 2), DType::Int32, 1 << 30, 38);
  ir::Value* weights = b.table(inInt8(b, b.make<tosa::Sub>(wide, sum), 31));
  ir::Value* product = b.make<tosa::Matmul>(weights, b.transpose(v, {1, 0, 2}), zero, zero);
  return b.finish({inInt8(b, product, 42)});
}

TEST(RowTiles, TakeLessMemoryWhereMapsDetermineTheArena) {
  const ir::Graph graph = attention(6, 80, 16);
  const auto inputs = randomInputs(graph, 1);
  for (const char* target : {"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"}) {
    const npu::Machine machine = require(npu::makeMachine(target, "", "Sram_Only"));
    const auto fastest = require(compiler::compile(graph, machine, {}));
    compiler::Options options;
    options.optimize = compiler::Optimize::Size;
    const auto smallest = require(compiler::compile(graph, machine, options));
    EXPECT_LT(smallest.arenaBytes * 10, fastest.arenaBytes * 6) << target;
    EXPECT_LE(smallest.arenaBound, smallest.arenaBytes) << target;
    EXPECT_EQ(differences(graph, target, "Sram_Only", inputs, true, options.optimize), "") << target;
    // In between, in fewer tiles.
    options = {};
    options.arenaLimit = (fastest.arenaBytes + smallest.arenaBytes) / 2;
    const auto between = require(compiler::compile(graph, machine, options));
    EXPECT_LE(between.arenaBytes, options.arenaLimit) << target;
    EXPECT_LT(between.cycles, smallest.cycles) << target;
    // Not at all.
    options.arenaLimit = smallest.arenaBytes - 16;
    EXPECT_FALSE(compiler::compile(graph, machine, options).ok()) << target;
  }
}

}  // namespace
}  // namespace carina::test
