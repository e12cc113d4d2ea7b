// SPDX-License-Identifier: Apache-2.0
// Large feature maps do not make the model repeatedly request memory from the system: temporary memory of an
// operation is kept for the next one.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "npu/isa/stream.hpp"
#include "npu/model/model.hpp"

namespace carina::npu {
namespace {

long pageFaults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

constexpr int32_t kHeight = 2, kWidth = 1500, kDepth = 1500;  // scores of an attention head: 4.5 MB

FeatureMap mapAt(uint64_t base) {
  FeatureMap map;
  map.height = map.height0 = map.height1 = kHeight;
  map.width = map.width0 = kWidth;
  map.depth = kDepth;
  map.region = 1;
  map.base[0] = base;
  map.strideX = kDepth;
  map.strideY = int64_t{kWidth} * kDepth;
  map.strideC = 1;
  return map;
}

KernelOperation operationOf(OperationKind kind) {
  constexpr uint64_t kBytes = uint64_t{kHeight} * kWidth * kDepth;
  KernelOperation op;
  op.kind = kind;
  op.ifm = mapAt(0);
  op.ofm = mapAt(2 * kBytes);
  op.globalScale = true;
  op.block = {2, 16, 16};
  op.microblock = {1, 2, 8};
  op.activation.min = -128;
  op.activation.max = 127;
  if (kind == OperationKind::Elementwise) {
    op.ifm2 = mapAt(kBytes);
    op.elementwise.mode = ElementwiseMode::Add;
    op.elementwise.ifmScale.multiplier = op.elementwise.ifm2Scale.multiplier = 1;
  } else {
    op.pool = PoolMode::Max;
  }
  return op;
}

TEST(ModelMemory, OperationsOnLargeFeatureMapsReusePages) {
  const auto machine = makeMachine("ethos-u55-128", "", "");
  ASSERT_TRUE(machine.ok());
  for (const OperationKind kind : {OperationKind::Elementwise, OperationKind::Pool}) {
    constexpr int kOperations = 6;
    std::vector<std::byte> arena(size_t{3} * kHeight * kWidth * kDepth);
    const RegionBytes regions[] = {{}, {arena, true}};
    ModelOptions options;
    options.timing = false;
    options.parallel = false;
    // Page faults of a run; further operations must not add any.
    const auto faultsOf = [&](int operations) {
      StreamWriter some(*machine->target);
      for (int i = 0; i < operations; ++i) EXPECT_TRUE(some.add(operationOf(kind)).ok());
      EXPECT_TRUE(some.add(Stop{}).ok());
      const long before = pageFaults();
      const RunResult result = runStream(some.words(), *machine, regions, options);
      EXPECT_TRUE(result.ok()) << result.fault->str();
      return pageFaults() - before;
    };
    faultsOf(1);
    const long one = faultsOf(1), many = faultsOf(kOperations);
    constexpr long kPagesOfAMap = long{kHeight} * kWidth * kDepth / 4096;
    EXPECT_LT(many - one, kPagesOfAMap / 4) << "of a map with " << kPagesOfAMap << " pages";
  }
}

}  // namespace
}  // namespace carina::npu
