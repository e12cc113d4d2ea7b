// SPDX-License-Identifier: Apache-2.0
// Findings of the checker for invalid streams, and no findings for valid ones.
#include <gtest/gtest.h>

#include <algorithm>

#include "npu/model/small_program.hpp"

namespace carina::test {
namespace {

using namespace npu;

int count(const RunResult& result, Finding::Kind kind) {
  return static_cast<int>(std::count_if(result.findings.begin(), result.findings.end(),
                                        [&](const Finding& f) { return f.kind == kind; }));
}

ModelOptions checking() {
  ModelOptions options;
  options.check = true;
  return options;
}

TEST(ModelChecker, AKernelThatReadsWhatADmaWritesNeedsAWait) {
  for (const bool wait : {false, true}) {
    SmallProgram program("ethos-u55-128");
    const KernelOperation op = program.copy(1, 1, 16, ElementType::Int8, std::vector<int64_t>(16, 1));
    const FeatureMap source = program.map(1, 1, 16, ElementType::Int8, std::vector<int64_t>(16, 7));
    DmaOperation dma;
    dma.source.region = dma.destination.region = 1;
    dma.source.address = source.base[0];
    dma.destination.address = op.ifm.base[0];
    dma.length = 16;
    program.add(dma);
    if (wait) program.add(DmaWait{0});
    program.add(op);
    ASSERT_EQ(program.run(checking()), "");
    EXPECT_EQ(count(program.result(), Finding::Kind::Hazard), wait ? 0 : 1);
  }
}

// Published Ethos-U55 programs copy single bytes, although its DMA is specified in units of 16 bytes.
TEST(ModelChecker, AShortDmaOfTheU55CountsAsSixteenBytes) {
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    SmallProgram program(target);
    KernelOperation op = program.copy(1, 1, 16, ElementType::Int8, std::vector<int64_t>(16, 1));
    const FeatureMap source = program.map(1, 1, 16, ElementType::Int8, std::vector<int64_t>(16, 7));
    DmaOperation dma;
    dma.source.region = dma.destination.region = 1;
    dma.source.address = source.base[0];
    dma.destination.address = op.ifm.base[0];
    dma.length = 1;
    op.ifm.depth = op.ofm.depth = 8;
    op.ifm.base[0] += 8;  // the second half of the unit whose first byte the DMA writes
    program.add(dma);
    program.add(op);
    ASSERT_EQ(program.run(checking()), "");
    EXPECT_EQ(count(program.result(), Finding::Kind::Alignment), 0) << target;
    EXPECT_EQ(count(program.result(), Finding::Kind::Hazard), target[7] == '5' ? 1 : 0) << target;
  }
}

TEST(ModelChecker, ADmaOverAKernelsInputNeedsAWait) {
  for (const bool wait : {false, true}) {
    SmallProgram program("ethos-u85-256");
    const KernelOperation op = program.copy(1, 1, 16, ElementType::Int8, std::vector<int64_t>(16, 1));
    const FeatureMap source = program.map(1, 1, 16, ElementType::Int8, std::vector<int64_t>(16, 7));
    DmaOperation dma;
    dma.source.region = dma.destination.region = 1;
    dma.source.address = source.base[0];
    dma.destination.address = op.ifm.base[0];
    dma.length = 16;
    program.add(op);
    if (wait) program.add(KernelWait{0});
    program.add(dma);
    ASSERT_EQ(program.run(checking()), "");
    EXPECT_EQ(count(program.result(), Finding::Kind::Hazard), wait ? 0 : 1);
  }
}

TEST(ModelChecker, BlockdepMustNotOutrunTheProducer) {
  for (const int dependency : {0, 1, 3}) {
    SmallProgram program("ethos-u55-128");
    // Four blocks of one row, the last written last; the consumer's first block needs only row 0.
    KernelOperation first = program.copy(4, 2, 16, ElementType::Int8, std::vector<int64_t>(128, 1));
    first.block = {1, 2, 16};
    program.add(first);
    KernelOperation second = program.copy(4, 2, 16, ElementType::Int8, std::vector<int64_t>(128, 0));
    second.ifm = first.ofm;
    second.block = {1, 2, 16};
    second.blockDependency = dependency;
    program.add(second);
    ASSERT_EQ(program.run(checking()), "");
    EXPECT_EQ(count(program.result(), Finding::Kind::Hazard), 0) << dependency;
  }
  SmallProgram program("ethos-u55-128");
  KernelOperation first = program.copy(1, 2, 16, ElementType::Int8, std::vector<int64_t>(32, 1));
  program.add(first);
  KernelOperation second = program.copy(1, 2, 16, ElementType::Int8, std::vector<int64_t>(32, 0));
  second.ifm = first.ofm;
  second.blockDependency = 1;  // its only block needs the producer's only block
  program.add(second);
  ASSERT_EQ(program.run(checking()), "");
  EXPECT_EQ(count(program.result(), Finding::Kind::Hazard), 1);
}

TEST(ModelChecker, ResizeReadsTheRowsAroundItsOutputs) {
  for (const int dependency : {1, 2, 4}) {
    SmallProgram program("ethos-u85-256");
    KernelOperation first = program.copy(4, 4, 16, ElementType::Int8, std::vector<int64_t>(256, 1));
    first.microblock = {1, 4, 16};
    first.block = {1, 4, 16};  // one block per row
    program.add(first);
    KernelOperation second = program.copy(8, 8, 16, ElementType::Int8, std::vector<int64_t>(1024, 0));
    second.kind = OperationKind::Resize;
    second.ifm = first.ofm;
    second.resizeX = second.resizeY = {2, 1, 0};
    second.kernel.height = second.kernel.width = 4;
    second.microblock = {1, 4, 16};
    second.block = {1, 8, 16};
    second.blockDependency = dependency;
    program.add(second);
    ASSERT_EQ(program.run(checking()), "");
    // The first row needs rows 0 and 1; with BLOCKDEP 4, all four rows may still be in flight.
    EXPECT_EQ(count(program.result(), Finding::Kind::Hazard), dependency == 4 ? 1 : 0) << dependency;
  }
}

TEST(ModelChecker, FindsIllegalBlocksAndAlignment) {
  SmallProgram program("ethos-u55-128");
  KernelOperation op = program.copy(4, 4, 32, ElementType::Int8, std::vector<int64_t>(512, 1));
  op.block = {32, 64, 128};
  op.ifmBufferEnd = 22;
  op.accumulatorStart = 2;
  program.add(op);
  ASSERT_EQ(program.run(checking()), "");
  EXPECT_GE(count(program.result(), Finding::Kind::BlockConfig), 2);

  SmallProgram skewed("ethos-u55-128");
  KernelOperation copy = skewed.copy(1, 1, 2, ElementType::Int16, {1, 2});
  copy.ifm.base[0] += 1;
  skewed.add(copy);
  ASSERT_EQ(skewed.run(checking()), "");
  EXPECT_EQ(count(skewed.result(), Finding::Kind::Alignment), 1);
}

TEST(ModelChecker, FindsUseBeforeSet) {
  auto machine = makeMachine("ethos-u55-128", "", "");
  const std::vector<uint32_t> words{0x00000005, 0xffff0000};  // POOL on reset state, STOP
  std::vector<std::byte> arena(64);
  const RegionBytes regions[] = {{arena, true}};
  const RunResult result = runStream(words, *machine, regions, checking());
  EXPECT_GT(count(result, Finding::Kind::StaleState), 10);
}

TEST(ModelChecker, UnaryOperationsNeedNoSecondScale) {
  auto machine = makeMachine("ethos-u85-256", "", "");
  for (const auto mode : {ElementwiseMode::Add, ElementwiseMode::Abs}) {
    const std::vector<uint32_t> words{static_cast<uint32_t>(mode) << 16 | 6, 0xffff0000};  // on reset state
    std::vector<std::byte> arena(64);
    const RegionBytes regions[] = {{arena, true}};
    const RunResult result = runStream(words, *machine, regions, checking());
    const bool named = std::any_of(result.findings.begin(), result.findings.end(), [](const Finding& f) {
      return f.message.find("NPU_SET_IFM2_SCALE") != std::string::npos;
    });
    EXPECT_EQ(named, mode == ElementwiseMode::Add);
  }
}

TEST(ModelChecker, PaddingNeedsNoOnChipMemory) {
  // A block of 3 x 29 at the edge of a 2 x 28 feature map: including its padding, it would not fit in 16 KiB.
  SmallProgram program("ethos-u85-256");
  KernelOperation op = program.copy(2, 28, 192, ElementType::Int8, std::vector<int64_t>(2 * 28 * 192, 1));
  op.kernel.height = op.kernel.width = 3;
  op.kernel.strideY = op.kernel.strideX = 2;
  op.padding = {.top = 0, .left = 0, .bottom = 1, .right = 1};
  op.ofm = program.map(1, 14, 192, ElementType::Int8, std::vector<int64_t>(14 * 192, 0));
  op.microblock = {1, 2, 16};
  op.block = {1, 14, 192};
  program.add(op);
  ASSERT_EQ(program.run(checking()), "");
  EXPECT_EQ(count(program.result(), Finding::Kind::BlockConfig), 0);
}

TEST(ModelChecker, ABranchWaitsForTheResultThatItTests) {
  for (const bool wait : {false, true}) {
    SmallProgram program("ethos-u85-256");
    program.add(program.copy(1, 1, 1, ElementType::Int8, {0}));
    if (wait) program.add(KernelWait{0});
    const uint32_t branch = program.position();
    program.add(Branch{true, 0});
    program.patchBranch(branch);
    ASSERT_EQ(program.run(checking()), "");
    EXPECT_EQ(count(program.result(), Finding::Kind::Hazard), wait ? 0 : 1);
    EXPECT_EQ(count(program.result(), Finding::Kind::StaleState), 0);
  }
}

TEST(ModelChecker, ABranchTestsAResultOfOneElement) {
  for (const int32_t depth : {1, 2}) {
    SmallProgram program("ethos-u85-256");
    program.add(
        program.copy(1, 1, depth, ElementType::Int8, std::vector<int64_t>(static_cast<size_t>(depth), 0)));
    program.add(KernelWait{0});
    const uint32_t branch = program.position();
    program.add(Branch{true, 0});
    program.patchBranch(branch);
    ASSERT_EQ(program.run(checking()), "");
    EXPECT_EQ(count(program.result(), Finding::Kind::StaleState), depth == 1 ? 0 : 1);
  }
}

}  // namespace
}  // namespace carina::test
