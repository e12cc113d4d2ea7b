// SPDX-License-Identifier: Apache-2.0
// Blocks of typical layers: the search must reach what the cycle formulas allow.
#include "compiler/schedule/block_search.hpp"

#include <gtest/gtest.h>

#include "compiler/schedule/block_memo.hpp"
#include "npu/isa/blockconfig.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

using namespace npu;

KernelOperation convolution(OperationKind kind, FeatureMap ifm, FeatureMap ofm, Kernel kernel) {
  KernelOperation op;
  op.kind = kind;
  op.ifm = ifm;
  op.ofm = ofm;
  op.kernel = kernel;
  op.weights.emplace();
  op.activation.min = -128;
  op.activation.max = 127;
  return op;
}

FeatureMap map(int32_t height, int32_t width, int32_t depth, Layout layout = Layout::NHCWB16) {
  FeatureMap result;
  result.height = height;
  result.width = result.width0 = width;
  result.depth = depth;
  result.layout = layout;
  return result;
}

OperationCost search(const char* target, KernelOperation& op) {
  const auto machine = require(makeMachine(target, "", "Sram_Only"));
  TimingContext context;
  context.machine = &machine;
  EXPECT_TRUE(compiler::chooseBlockAndTraversal(op, context).ok());
  EXPECT_TRUE(BlockRules(*machine.target, op).check(op.block).ok());
  return estimate(op, context);
}

// 56x56x24 to 144 channels: the output unit needs half a cycle per element. Part-kernel-first MACs take less,
// or half as long again if a single tap costs a step of four; no measured layer rules that out.
TEST(BlockSearch, PointwiseConvolutionsOfFewChannelsRunDepthFirst) {
  KernelOperation op =
      convolution(OperationKind::Conv, map(56, 56, 24), map(56, 56, 144), {1, 1, 1, 1, 1, 1});
  op.weights->traversal = Traversal::PartKernelFirst;
  const OperationCost cost = search("ethos-u85-128", op);
  EXPECT_EQ(op.weights->traversal, Traversal::DepthFirst);
  EXPECT_EQ(cost.output, 56 * 56 * 144 / 2);
  EXPECT_LT(cost.total, cost.output * 102 / 100);
}

// A depthwise block takes 4 cycles per microblock of 1x1x16 and 4 taps: 9 / 16 per element.
TEST(BlockSearch, DepthwiseIsBoundByItsMacs) {
  KernelOperation op =
      convolution(OperationKind::Depthwise, map(112, 112, 32), map(112, 112, 32), {3, 3, 1, 1, 1, 1});
  op.padding = {1, 1, 1, 1};
  const OperationCost cost = search("ethos-u85-128", op);
  EXPECT_EQ(cost.mac, 112 * 112 * 32 * 9 / 16);
  EXPECT_LT(cost.total, cost.mac * 101 / 100);
}

// One row of 6272 columns: only narrow blocks fit, and the narrowest leave the MACs waiting for weights.
TEST(BlockSearch, LongRowsGetBlocksThatHideTheWeights) {
  for (const char* target : {"ethos-u55-128", "ethos-u85-128", "ethos-u85-256"}) {
    KernelOperation op = convolution(OperationKind::Conv, map(3, 6272, 8, Layout::NHWC),
                                     map(1, 6272, 24, Layout::NHWC), {3, 1, 1, 1, 1, 1});
    op.weights->traversal = Traversal::PartKernelFirst;
    const OperationCost cost = search(target, op);
    EXPECT_LT(cost.total, cost.output * 110 / 100) << target;
  }
}

// Whether a network can be compiled is asked before it is compiled: the quick check agrees with the search.
TEST(BlockSearch, TheQuickCheckAgreesWithTheSearch) {
  for (const char* target : {"ethos-u55-32", "ethos-u65-512", "ethos-u85-128"}) {
    const auto machine = makeMachine(target, "", "");
    TimingContext context;
    context.machine = &*machine;
    const auto wide = machine->target->isU85() ? AccumulatorFormat::Int48 : AccumulatorFormat::Int40;
    for (const auto type : {ElementType::Int8, ElementType::Int16}) {
      for (const int kernel : {1, 7, 9}) {
        for (const int stride : {1, 3}) {
          KernelOperation op = convolution(OperationKind::Conv, map(40, 40, 64), map(11, 11, 64),
                                           {kernel, 8, stride, stride, 1, 2});
          op.ifm.type = op.ofm.type = type;
          if (type == ElementType::Int16) op.accumulator = wide;
          KernelOperation searched = op;
          EXPECT_EQ(compiler::checkBlock(op, *machine->target).ok(),
                    compiler::chooseBlockAndTraversal(searched, context).ok())
              << target << " kernel " << kernel << " stride " << stride;
        }
      }
    }
  }
}

// Layers that differ only in addresses and scales are searched once, and get the blocks of that search.
TEST(BlockSearch, EquivalentOperationsAreSearchedOnce) {
  for (const char* target : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
    const auto machine = require(makeMachine(target, "", ""));
    TimingContext context;
    context.machine = &machine;
    compiler::BlockMemo memo;
    const KernelOperation first =
        convolution(OperationKind::Conv, map(28, 28, 32), map(28, 28, 64), {3, 3, 1, 1, 1, 1});
    KernelOperation expected = first;
    ASSERT_TRUE(compiler::chooseBlockAndTraversal(expected, context).ok());
    for (uint32_t i = 0; i < 100; ++i) {
      KernelOperation op = first;
      op.ifm.base[0] = i * 4096;
      op.ofm.base[0] = i * 8192;
      op.ofm.zeroPoint = static_cast<int32_t>(i);
      op.ofmScale.multiplier = i + 1;
      const auto chosen = require(memo.choose({&op, 1}, {&context, 1}, true));
      EXPECT_EQ(chosen.cost.total, estimate(expected, context).total);
      KernelOperation applied = first;
      chosen.blocks.front().apply(applied);
      EXPECT_EQ(applied, expected) << target;
    }
    EXPECT_EQ(memo.searches(), 1u);
    // Differences in what the search depends on cause another search.
    KernelOperation wider = first;
    wider.ofm.depth = 128;
    ASSERT_TRUE(memo.choose({&wider, 1}, {&context, 1}, true).ok());
    context.weights = Area::Arena;
    ASSERT_TRUE(memo.choose({&first, 1}, {&context, 1}, true).ok());
    ASSERT_TRUE(memo.choose({&first, 1}, {&context, 1}, false).ok());
    EXPECT_EQ(memo.searches(), 4u);
  }
}

}  // namespace
}  // namespace carina::test
