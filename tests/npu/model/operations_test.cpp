// SPDX-License-Identifier: Apache-2.0
// Features that random operations do not cover: accumulators kept across operations, weights and accumulators
// from IFM2, chaining buffers, DMA in all dimensions, branches.
#include <gtest/gtest.h>

#include <cstring>

#include "npu/model/small_program.hpp"
#include "npu/weights/scale_records.hpp"

namespace carina::test {
namespace {

using namespace npu;

TEST(ModelOperations, WeightsFromIfm2MultiplyMatrices) {
  SmallProgram program("ethos-u85-256");
  KernelOperation op;
  op.kind = OperationKind::Conv;
  op.weightsFromIfm2 = true;
  op.globalScale = true;
  op.ofmScale = {1, 0, 0, Rounding::Natural};
  op.ifm = program.map(1, 2, 3, ElementType::Int8, {1, 2, 3, -4, 5, 6});
  op.ifm2 = program.map(1, 2, 3, ElementType::Int8, {7, 8, 9, 1, 0, -1});
  op.ifm2->zeroPoint = 1;
  op.ofm = program.map(1, 2, 2, ElementType::Int32, {0, 0, 0, 0});
  op.activation.clamp = false;
  program.add(op);
  ASSERT_EQ(program.run(), "");
  EXPECT_EQ(program.values(op.ofm), (std::vector<int64_t>{1 * 6 + 2 * 7 + 3 * 8, 1 * 0 + 2 * -1 + 3 * -2,
                                                          -4 * 6 + 5 * 7 + 6 * 8, 0 - 5 - 12}));
}

TEST(ModelOperations, SumsOfTheLargestProductsExceed32Bits) {
  SmallProgram program("ethos-u85-256");
  KernelOperation op;
  op.kind = OperationKind::Conv;
  op.weightsFromIfm2 = true;
  op.accumulator = AccumulatorFormat::Int48;
  op.globalScale = true;
  op.ofmScale = {1, 8, 0, Rounding::Natural};
  op.activation.clamp = false;
  op.ifm = program.map(1, 1, 256, ElementType::Int16, std::vector<int64_t>(256, -32768));
  op.ifm2 = program.map(1, 1, 256, ElementType::Int16, std::vector<int64_t>(256, -256));
  op.ofm = program.map(1, 1, 1, ElementType::Int32, {0});
  program.add(op);
  ASSERT_EQ(program.run(), "");
  EXPECT_EQ(program.values(op.ofm), (std::vector<int64_t>{1 << 23}));  // 2^31 / 2^8
}

TEST(ModelOperations, KeptAccumulatorsSplitAReduction) {
  SmallProgram program("ethos-u85-256");
  KernelOperation op;
  op.kind = OperationKind::Conv;
  op.weightsFromIfm2 = true;
  op.globalScale = true;
  op.ofmScale = {1, 0, 0, Rounding::Natural};
  op.activation.clamp = false;
  op.ifm = program.map(1, 2, 2, ElementType::Int8, {1, 2, 3, 4});
  op.ifm2 = program.map(1, 1, 2, ElementType::Int8, {10, 100});
  const FeatureMap result = program.map(1, 2, 1, ElementType::Int32, {0, 0});
  op.ofm = result;
  op.ofm.storage = Storage::None;
  op.ofm.base = {};
  op.accumulatorOutput = false;
  program.add(op);
  op.ifm = program.map(1, 2, 2, ElementType::Int8, {5, 6, 7, 8});
  op.accumulatorInput = AccumulatorInput::Keep;
  op.accumulatorOutput = true;
  op.ofm = result;
  program.add(op);
  ASSERT_EQ(program.run(), "");
  EXPECT_EQ(program.values(result), (std::vector<int64_t>{210 + 650, 430 + 870}));
}

TEST(ModelOperations, KeepingMissingAccumulatorsIsAFault) {
  SmallProgram program("ethos-u85-256");
  KernelOperation op = program.copy(1, 1, 4, ElementType::Int8, {1, 2, 3, 4});
  op.accumulatorInput = AccumulatorInput::Keep;
  program.add(op);
  EXPECT_NE(program.run().find("accumulators to keep"), std::string::npos);
}

TEST(ModelOperations, PoolNoneTakesAccumulatorsFromIfm2) {
  SmallProgram program("ethos-u85-256");
  KernelOperation op;
  op.kind = OperationKind::Pool;
  op.pool = PoolMode::None;
  op.globalScale = true;
  op.ofmScale = {3, 1, 0, Rounding::Natural};
  op.ifm.type = ElementType::Int8;
  op.accumulatorInput = AccumulatorInput::Ifm2;
  op.ifm2 = program.map(1, 1, 4, ElementType::Int32, {100000, -100000, 7, -7});
  op.ofm = program.map(1, 1, 4, ElementType::Int32, {0, 0, 0, 0});
  op.activation.clamp = false;
  program.add(op);
  ASSERT_EQ(program.run(), "");
  EXPECT_EQ(program.values(op.ofm), (std::vector<int64_t>{150000, -150000, 11, -10}));
}

TEST(ModelOperations, AveragesOfSingleElementsRescaleChannels) {
  for (const char* target : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
    SmallProgram program(target);
    KernelOperation op = program.copy(1, 2, 3, ElementType::Int8, {10, 20, 30, -10, -20, -30});
    op.pool = PoolMode::Average;
    op.globalScale = false;
    // x / 2, x * 3, (x + 2) / 4
    const std::vector<ScaleRecord> records{{0, 1, 1}, {0, 3, 0}, {2, 1, 2}};
    const auto streams = encodeScales(records, program.target(),
                                      scaleFormat(program.target(), op.accumulator), op.microblock.c);
    ASSERT_TRUE(streams.ok());
    op.weights.emplace();
    op.weights->scaleRegion = 1;
    for (size_t s = 0; s < streams->size(); ++s) {
      program.arena().resize((program.arena().size() + 15) / 16 * 16);
      op.weights->scales[s] = {program.arena().size(), (*streams)[s].size()};
      for (const uint8_t byte : (*streams)[s]) program.arena().push_back(std::byte{byte});
    }
    program.add(op);
    ASSERT_EQ(program.run(), "") << target;
    EXPECT_EQ(program.values(op.ofm), (std::vector<int64_t>{5, 60, 8, -5, -60, -7})) << target;
  }
}

TEST(ModelOperations, ChainsForwardTensors) {
  SmallProgram program("ethos-u85-512");
  KernelOperation add;
  add.kind = OperationKind::Elementwise;
  add.elementwise.mode = ElementwiseMode::Add;
  add.globalScale = true;
  add.ofmScale = {1, 0, 0, Rounding::Natural};
  add.activation.clamp = false;
  add.ifm = program.map(1, 1, 3, ElementType::Int32, {1, 2, 3});
  add.ifm2 = program.map(1, 1, 3, ElementType::Int32, {10, 20, 30});
  add.ofm = program.map(1, 1, 3, ElementType::Int32, {0, 0, 0});
  const FeatureMap result = add.ofm;
  add.ofm.storage = Storage::Chained;
  add.ofm.region = 0;
  program.add(add);
  KernelOperation mul = add;
  mul.elementwise.mode = ElementwiseMode::Mul;
  mul.ifm = add.ofm;
  mul.ifm2 = program.map(1, 1, 3, ElementType::Int32, {2, 3, 4});
  mul.ofm = result;
  program.add(mul);
  ASSERT_EQ(program.run(), "");
  EXPECT_EQ(program.values(result), (std::vector<int64_t>{22, 66, 132}));
}

TEST(ModelOperations, ReadingAnUnwrittenChainIsAFault) {
  SmallProgram program("ethos-u85-512");
  KernelOperation op;
  op.kind = OperationKind::Elementwise;
  op.elementwise.mode = ElementwiseMode::Abs;
  op.globalScale = true;
  op.ifm.type = ElementType::Int8;
  op.ifm.storage = Storage::Chained;
  op.ifm.region = 2;
  op.ofm = program.map(1, 1, 3, ElementType::Int8, {0, 0, 0});
  program.add(op);
  EXPECT_NE(program.run().find("chaining buffer 2"), std::string::npos);
}

TEST(ModelOperations, ThreeByOneTilesStackRows) {
  SmallProgram program("ethos-u85-256");
  KernelOperation op = program.copy(6, 1, 1, ElementType::Int8, {1, 2, 3, 4, 5, 6});
  // Rows 0..1 in tile 0, 2..3 in tile 1, 4..5 in tile 2; HEIGHT1 counts from row 0.
  op.ifm.storage = Storage::Tiles3x1;
  op.ifm.height0 = 2;
  op.ifm.height1 = 4;
  op.ifm.base[1] = op.ifm.base[0] + 4;
  op.ifm.base[2] = op.ifm.base[0] + 2;
  program.add(op);
  ASSERT_EQ(program.run(), "");
  EXPECT_EQ(program.values(op.ofm), (std::vector<int64_t>{1, 2, 5, 6, 3, 4}));
}

DmaOperation dmaOf(const FeatureMap& from, const FeatureMap& to, uint64_t length) {
  DmaOperation dma;
  dma.source.region = dma.destination.region = 1;
  dma.source.address = from.base[0];
  dma.destination.address = to.base[0];
  dma.length = length;
  return dma;
}

TEST(ModelOperations, TanhOfU55ReadsTheTableOfTensorFlowLite) {
  // 4 / 24, 8 / 24 and -4 / 24 in units of 1 / (3 * 4096): table entries that are not the nearest values of
  // tanh.
  SmallProgram program("ethos-u55-128");
  KernelOperation op = program.copy(1, 1, 3, ElementType::Int16, {2 * 4 << 8, 2 * 8 << 8, -(2 * 4 << 8)});
  op.ofmScale = {1, 1, 0, Rounding::Natural};
  op.activation.table = Table::Tanh;
  program.add(op);
  ASSERT_EQ(program.run(), "");
  EXPECT_EQ(program.values(op.ofm), (std::vector<int64_t>{35493 - 32768, 38180 - 32768, 32768 - 35493}));
}

TEST(ModelOperations, U65DmaLeavesGaps) {
  SmallProgram program("ethos-u65-256");
  const FeatureMap from = program.map(1, 1, 8, ElementType::Int8, {1, 2, 3, 4, 5, 6, 7, 8});
  const FeatureMap to = program.map(1, 1, 16, ElementType::Int8, std::vector<int64_t>(16, 0));
  DmaOperation dma = dmaOf(from, to, 2);
  dma.destinationDimensions = 3;
  dma.size0 = 2;
  dma.size1 = 2;
  dma.destination.stride0 = 1;
  dma.destination.stride1 = 3;
  program.add(dma);
  ASSERT_EQ(program.run(), "");
  EXPECT_EQ(program.values(to), (std::vector<int64_t>{1, 2, 0, 3, 4, 0, 0, 0, 0, 5, 6, 0, 7, 8, 0, 0}));
}

TEST(ModelOperations, U85DmaStepsFromStartToStart) {
  SmallProgram program("ethos-u85-256");
  const FeatureMap from = program.map(1, 1, 8, ElementType::Int8, {1, 2, 3, 4, 5, 6, 7, 8});
  const FeatureMap to = program.map(1, 1, 8, ElementType::Int8, std::vector<int64_t>(8, 0));
  DmaOperation dma = dmaOf(from, to, 1);
  dma.dimensions = 3;
  dma.size0 = 2;
  dma.size1 = 2;
  dma.source.stride0 = 4;
  dma.source.stride1 = 1;
  dma.destination.stride0 = 1;
  dma.destination.stride1 = 2;
  program.add(dma);
  ASSERT_EQ(program.run(), "");
  EXPECT_EQ(program.values(to), (std::vector<int64_t>{1, 5, 2, 6, 0, 0, 0, 0}));
}

TEST(ModelOperations, U85GathersAndScatters) {
  for (const bool gather : {true, false}) {
    SmallProgram program("ethos-u85-256");
    const FeatureMap from = program.map(1, 1, 6, ElementType::Int16, {10, 11, 20, 21, 30, 31});
    const FeatureMap to = program.map(1, 1, 6, ElementType::Int16, std::vector<int64_t>(6, 0));
    const FeatureMap index = program.map(1, 1, 3, ElementType::Int32, {2, 0, 1});
    DmaOperation dma = dmaOf(from, to, 4);
    dma.dimensions = 2;
    dma.size0 = 3;
    (gather ? dma.source : dma.destination).indexed = true;
    dma.source.stride0 = dma.destination.stride0 = 4;
    dma.indexRegion = 1;
    dma.indexAddress = index.base[0];
    dma.indexMax = 2;
    program.add(dma);
    ASSERT_EQ(program.run(), "");
    EXPECT_EQ(program.values(to), gather ? (std::vector<int64_t>{30, 31, 10, 11, 20, 21})
                                         : (std::vector<int64_t>{20, 21, 30, 31, 10, 11}));
  }
}

TEST(ModelOperations, AGatherIndexBeyondItsBoundIsAFault) {
  SmallProgram program("ethos-u85-256");
  const FeatureMap from = program.map(1, 1, 6, ElementType::Int16, {10, 11, 20, 21, 30, 31});
  const FeatureMap index = program.map(1, 1, 1, ElementType::Int32, {3});
  DmaOperation dma = dmaOf(from, from, 4);
  dma.source.indexed = true;
  dma.source.stride0 = 4;
  dma.indexRegion = 1;
  dma.indexAddress = index.base[0];
  dma.indexMax = 2;
  program.add(dma);
  EXPECT_NE(program.run().find("DMA index 3"), std::string::npos);
}

TEST(ModelOperations, BranchesFollowTheResultFlag) {
  for (const int64_t flag : {0, 1}) {
    SmallProgram program("ethos-u85-256");
    const KernelOperation condition = program.copy(1, 1, 1, ElementType::Int8, {flag});
    const KernelOperation skipped = program.copy(1, 1, 1, ElementType::Int8, {9});
    program.add(condition);
    const uint32_t branch = program.position();
    program.add(Branch{true, 0});
    program.add(skipped);
    program.patchBranch(branch);
    ASSERT_EQ(program.run(), "");
    EXPECT_EQ(program.values(skipped.ofm), std::vector<int64_t>{flag == 1 ? 0 : 9});
  }
}

TEST(ModelOperations, NegativeStridesReverseOnU55) {
  SmallProgram program("ethos-u55-128");
  KernelOperation op = program.copy(1, 4, 1, ElementType::Int8, {1, 2, 3, 4});
  FeatureMap forward = op.ofm;
  op.ofm.base[0] += 3;
  op.ofm.strideX = -1;
  program.add(op);
  ASSERT_EQ(program.run(), "");
  EXPECT_EQ(program.values(forward), (std::vector<int64_t>{4, 3, 2, 1}));
}

}  // namespace
}  // namespace carina::test
