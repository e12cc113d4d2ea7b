// SPDX-License-Identifier: Apache-2.0
// What the checker says about wrong streams, and that it is silent about right ones.
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
    // Four blocks of one row: the last is written last, the consumer's first block needs row 0 only.
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

}  // namespace
}  // namespace carina::test
