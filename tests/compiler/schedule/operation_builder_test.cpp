// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/operation_builder.hpp"

#include <gtest/gtest.h>

#include <set>

#include "compiler/compiler.hpp"
#include "compiler/program_runner.hpp"
#include "compiler/schedule/stripes.hpp"
#include "compiler/tosa_graphs.hpp"
#include "support/require.hpp"

namespace carina::compiler {
namespace {

npu::KernelOperation copyOf(const npu::Target& target, npu::ElementType from, npu::ElementType to) {
  npu::KernelOperation op;
  op.kind = npu::OperationKind::Pool;
  op.pool = target.isU85() ? npu::PoolMode::Sum : npu::PoolMode::Average;
  op.ifm.type = from;
  op.ofm.type = to;
  op.ofmScale = {1 << 30, 31, 0, npu::Rounding::Natural};
  return op;
}

TEST(AsProduct, ConvertsCopiesWithTheirScalesAndTables) {
  for (const char* name : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
    const npu::Target& target = **npu::findTarget(name);
    npu::KernelOperation copy = copyOf(target, npu::ElementType::Int16, npu::ElementType::Int8);
    copy.ifm.zeroPoint = 3;
    copy.activation.table = npu::Table::Lut8;
    const auto product = asProduct(copy, target);
    ASSERT_TRUE(product) << name;
    EXPECT_EQ(product->kind, npu::OperationKind::Elementwise);
    EXPECT_EQ(product->elementwise.mode, npu::ElementwiseMode::Mul);
    EXPECT_EQ(product->elementwise.scalar, 1);
    EXPECT_EQ(product->ifm, copy.ifm);
    EXPECT_EQ(product->ofmScale, copy.ofmScale);
    EXPECT_EQ(product->activation, copy.activation);
  }
}

TEST(AsProduct, RefusesPoolsThatAreNotScaledCopies) {
  const npu::Target &u55 = **npu::findTarget("ethos-u55-128"), &u85 = **npu::findTarget("ethos-u85-256");
  using npu::ElementType;
  npu::KernelOperation op = copyOf(u85, ElementType::Int8, ElementType::Int8);
  op.transpose = npu::Transpose::CHW;
  EXPECT_FALSE(asProduct(op, u85));
  op = copyOf(u85, ElementType::Int8, ElementType::Int8);
  op.kernel.strideX = 2;
  EXPECT_FALSE(asProduct(op, u85));
  op = copyOf(u85, ElementType::Int8, ElementType::Int8);
  op.upscale = npu::Upscale::Nearest;
  EXPECT_FALSE(asProduct(op, u85));
  op = copyOf(u85, ElementType::Int8, ElementType::Int8);
  op.pool = npu::PoolMode::Max;
  EXPECT_FALSE(asProduct(op, u85));
  EXPECT_FALSE(asProduct(copyOf(u85, ElementType::Int32, ElementType::Int8), u85));
  EXPECT_TRUE(asProduct(copyOf(u85, ElementType::Int8, ElementType::Int32), u85));
  EXPECT_FALSE(asProduct(copyOf(u55, ElementType::Int8, ElementType::Int32), u55));
}

npu::KernelOperation rowOf(int32_t positions) {
  npu::KernelOperation op;
  op.kind = npu::OperationKind::Conv;
  op.weights.emplace();
  for (auto [map, depth] : {std::pair{&op.ifm, 24}, std::pair{&op.ofm, 40}}) {
    map->width = map->width0 = positions;
    map->depth = depth;
    map->strideX = depth;
    map->strideY = int64_t{positions} * depth;
  }
  return op;
}

TEST(TwoRows, CoverTheRowAndNothingElse) {
  for (const int32_t positions : {3, 4, 5, 49, 98, 196, 197}) {
    const npu::KernelOperation row = rowOf(positions), rows = inTwoRows(row);
    EXPECT_EQ(npu::rowsOverlap(rows.ofm), positions % 2 != 0) << positions;
    for (const npu::FeatureMap* map : {&rows.ifm, &rows.ofm}) {
      std::set<int64_t> addresses;
      for (int32_t y = 0; y < map->height; ++y) {
        for (int32_t x = 0; x < map->width; ++x) addresses.insert(y * map->strideY + x * map->strideX);
      }
      EXPECT_EQ(addresses.size(), static_cast<size_t>(positions));
      EXPECT_EQ(*addresses.rbegin(), (positions - 1) * map->strideX);
    }
    EXPECT_EQ(inOneRow(rows), row);
  }
}

TEST(TwoRows, RequireOneRowAndMicroblocksOfTwoRows) {
  const auto allowed = [](const npu::KernelOperation& op, const char* target) {
    return allowsTwoRows(op, **npu::findTarget(target));
  };
  EXPECT_TRUE(allowed(rowOf(49), "ethos-u55-256"));
  EXPECT_TRUE(allowed(rowOf(49), "ethos-u65-512"));
  EXPECT_TRUE(allowed(rowOf(98), "ethos-u65-512"));
  EXPECT_FALSE(allowed(rowOf(49), "ethos-u55-128"));
  EXPECT_FALSE(allowed(rowOf(49), "ethos-u85-256"));
  EXPECT_FALSE(allowed(rowOf(1), "ethos-u55-256"));
  EXPECT_FALSE(allowed(inTwoRows(rowOf(98)), "ethos-u55-256"));
  npu::KernelOperation wide = rowOf(49);
  wide.kernel.width = 3;
  wide.ifm.width = 51;
  EXPECT_FALSE(allowed(wide, "ethos-u55-256"));
}

TEST(TwoRows, AreNotComputedInStripes) {
  // The layers around them have one row.
  EXPECT_TRUE(canStripe(rowOf(98)));
  EXPECT_FALSE(canStripe(inTwoRows(rowOf(98))));
  EXPECT_FALSE(canStripe(inTwoRows(rowOf(99))));
}

/// A linear layer over so many tokens.
ir::Graph layerOver(int64_t tokens, int64_t from, int64_t to) {
  test::TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 1, tokens, from});
  return b.finish({b.rescalePerChannel(b.conv(x, to, {1, 1}), DType::Int8, 42, 3)});
}

TEST(TwoRows, HalveTheWeightTrafficOfMoreTokensThanABlockHasColumns) {
  const npu::Machine machine = require(npu::makeMachine("ethos-u65-512", "", ""));
  const auto cyclesOver = [&](int64_t tokens) {
    return require(compile(layerOver(tokens, 512, 512), machine, {})).cycles;
  };
  EXPECT_LT(cyclesOver(98) * 100, cyclesOver(97) * 105);
  EXPECT_LT(cyclesOver(98) * 100, cyclesOver(64) * 140);
}

TEST(TwoRows, GiveTheResultsOfOneRow) {
  for (const int64_t tokens : {4, 66, 98, 99, 130}) {
    const ir::Graph graph = layerOver(tokens, 48, 40);
    for (const char* target : {"ethos-u55-256", "ethos-u65-256", "ethos-u65-512"})
      EXPECT_EQ(test::differences(graph, target, "", test::randomInputs(graph, 3)), "") << target << tokens;
  }
}

}  // namespace
}  // namespace carina::compiler
