// SPDX-License-Identifier: Apache-2.0
// The cycle model compared with worked examples of the architecture notes, block rules, and invariants of
// every timeline.
#include "npu/timing/timing.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "npu/isa/blockconfig.hpp"
#include "npu/model/small_program.hpp"
#include "npu/timing/way.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

using namespace npu;

// U85-256, DRAM_Mid, Dedicated: 3x3 convolution 28x28x1 -> 26x26x32, part-kernel, 2:4 sparse. The public
// estimator gives 6418 cycles: 312 per block for the multipliers, 612 to fill. According to measurements,
// nine taps are not rounded up to twelve, a single depth step is not halved, and rows of 28 bytes are not
// padded (docs/npu-model.md).
TEST(Timing, WorkedConvolutionOnU85) {
  const auto machine =
      require(makeMachine("ethos-u85-256", "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"));
  KernelOperation op;
  op.ifm.height = op.ifm.width = 28;
  op.ofm.height = op.ofm.width = op.ofm.width0 = 26;
  op.ofm.depth = 32;
  op.ofm.layout = Layout::NHCWB16;
  op.kernel.height = op.kernel.width = 3;
  op.weights.emplace();
  op.weights->traversal = Traversal::PartKernelFirst;
  op.weights->sparse = true;
  op.microblock = {2, 2, 8};
  op.block = {4, 26, 16};
  op.activation.min = -128;
  op.activation.max = 127;
  TimingContext context;
  context.machine = &machine;
  context.ofm = context.weights = context.scales = Area::Cache;
  context.weightBytes = 400;
  context.scaleBytes = 320;
  EXPECT_EQ(BlockRules(*machine.target, op).ifmBlock(op.block), (BlockShape{6, 28, 16}));
  const OperationCost cost = estimate(op, context);
  EXPECT_EQ(cost.mac, 312 * 2 * 9 / 12 * 13);
  EXPECT_EQ(cost.output, 416 * 13);
  EXPECT_EQ(cost.fill, 500 + 28 * 6 / 12);
  EXPECT_EQ(cost.drain, 84);
  EXPECT_EQ(cost.npu, cost.mac + 416 + cost.fill + cost.drain);
  EXPECT_EQ(cost.bound, BoundBy::Mac);
  EXPECT_EQ(cost.macs, 26 * 26 * 32 * 9);
}

KernelOperation depthwiseOnU85() {
  KernelOperation op;
  op.kind = OperationKind::Depthwise;
  op.ifm.height = op.ifm.width = op.ofm.height = op.ofm.width = op.ofm.width0 = 6;
  op.ifm.depth = op.ofm.depth = 128;
  op.kernel.height = op.kernel.width = 3;
  op.padding = {1, 1, 1, 1};
  op.weights.emplace();
  op.microblock = {2, 2, 16};
  op.block = {6, 6, 128};
  op.activation.min = -128;
  op.activation.max = 127;
  return op;
}

// One block of eight slices: when the multipliers finish, only the last slice remains for the output unit and
// the port.
TEST(Timing, DepthwiseBlocksLeaveInSlices) {
  const auto machine = require(makeMachine("ethos-u85-512", "Ethos_U85_SYS_DRAM_Mid", "Sram_Only"));
  timing::Rules whole = timing::kCalibrated;
  whole.u85DepthwiseSlices = false;
  const KernelOperation op = depthwiseOnU85();
  TimingContext context;
  context.machine = &machine;
  const OperationCost slices = estimate(op, context);
  context.rules = &whole;
  const OperationCost blocks = estimate(op, context);
  EXPECT_EQ(blocks.npu, blocks.fill + blocks.mac + blocks.output + blocks.drain);
  EXPECT_EQ(slices.mac, blocks.mac);
  EXPECT_EQ(slices.npu, slices.fill + slices.mac + slices.output / 8 + slices.drain);
  EXPECT_LT(slices.drain, blocks.drain);
}

// A small layer in DRAM is limited by its 16-byte writes, 32 of them in flight, which begin after its first
// slice. A layer limited by the multipliers is unaffected.
TEST(Timing, PortsWaitForTheFirstBlockAndDelayTheLast) {
  const auto slow = require(makeMachine("ethos-u85-512", "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram"));
  auto fast = require(makeMachine("ethos-u85-512", "Ethos_U85_SYS_DRAM_Mid", "Sram_Only"));
  fast.system.ports[0].readLatency = fast.system.ports[0].writeLatency = 1;
  timing::Rules without = timing::kCalibrated;
  without.u85PortEnds = false;
  const auto totals = [&](const Machine& machine) {
    TimingContext context;
    context.machine = &machine;
    const OperationCost with = estimate(depthwiseOnU85(), context);
    context.rules = &without;
    const OperationCost bare = estimate(depthwiseOnU85(), context);
    EXPECT_EQ(with.npu, bare.npu);
    EXPECT_EQ(with.port, bare.port);
    EXPECT_EQ(bare.total, std::max({bare.npu, bare.port[0], bare.port[1]}));
    return std::pair{with.total - bare.total, with.fill};
  };
  const auto [later, fill] = totals(slow);
  EXPECT_GT(later, fill);
  EXPECT_EQ(totals(fast).first, 0);
}

// A chained addition costs only the output unit's time, and nothing if the multipliers take longer.
TEST(Timing, ChainsHideBehindTheMultipliers) {
  const auto machine = require(makeMachine("ethos-u85-128", "", "Sram_Only"));
  KernelOperation conv;
  conv.ifm.height = conv.ifm.width = conv.ofm.height = conv.ofm.width = conv.ofm.width0 = 32;
  conv.ifm.depth = 256;
  conv.ofm.depth = 16;
  conv.ifm.layout = conv.ofm.layout = Layout::NHCWB16;
  conv.weights.emplace();
  conv.weights->traversal = Traversal::DepthFirst;
  conv.microblock = {1, 2, 8};
  conv.block = {2, 8, 16};
  conv.activation.min = -128;
  conv.activation.max = 127;
  KernelOperation add;
  add.kind = OperationKind::Elementwise;
  add.globalScale = true;
  add.ifm = add.ofm = conv.ofm;
  add.ifm2 = conv.ofm;
  add.microblock = conv.microblock;
  add.block = conv.block;
  add.activation = conv.activation;
  const auto cycles = [&](bool chained) {
    KernelOperation first = conv, second = add;
    if (chained) first.ofm.storage = second.ifm.storage = Storage::Chained;
    Timeline timeline(machine);
    timeline.add(Operation(first), 0);
    timeline.add(Operation(second), 8);
    return timeline.total();
  };
  Timeline alone(machine);
  alone.add(Operation(conv), 0);
  EXPECT_LT(cycles(true), alone.total() + 200);  // the first and last blocks of the other feature map
  EXPECT_GT(cycles(false), alone.total() + 8000);
  // Shallow input: the output unit is the bottleneck and takes twice as long.
  conv.ifm.depth = 16;
  Timeline shallow(machine);
  shallow.add(Operation(conv), 0);
  EXPECT_GT(cycles(true), shallow.total() + 7000);
  EXPECT_LE(cycles(true), cycles(false) + 100);  // one block for both
}

// U85-256: 2x2 maximum 26x26x32 -> 13x13x32 in SRAM, two blocks. The public estimator gives 1456 cycles per
// block for the multipliers, four per tap; measured pools take one per tap.
TEST(Timing, WorkedPoolOnU85) {
  const auto machine =
      require(makeMachine("ethos-u85-256", "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"));
  KernelOperation op;
  op.kind = OperationKind::Pool;
  op.pool = PoolMode::Max;
  op.globalScale = true;
  op.ofm.height = op.ofm.width = op.ofm.width0 = 13;
  op.ifm.depth = op.ofm.depth = 32;
  op.ifm.layout = op.ofm.layout = Layout::NHCWB16;
  op.kernel = {2, 2, 2, 2, 1, 1};
  op.microblock = {1, 2, 16};
  op.block = {13, 14, 16};
  op.activation.min = -128;
  op.activation.max = 127;
  TimingContext context;
  context.machine = &machine;
  context.ifm = context.ofm = Area::Cache;
  EXPECT_EQ(BlockRules(*machine.target, op).ifmBlock(op.block), (BlockShape{26, 28, 16}));
  const OperationCost cost = estimate(op, context);
  EXPECT_EQ(cost.mac, 1456 / 4 * 2);
  EXPECT_EQ(cost.output, 676 * 2);
  EXPECT_EQ(cost.fill, 370);
  EXPECT_EQ(cost.drain, 116);
  EXPECT_EQ(cost.npu, cost.output + 1456 / 4 + 370 + 116);
}

// Kernels of fewer than four taps, part-kernel-first, cost their taps or a whole MAC step (two taps for
// 16-bit input).
TEST(Timing, SmallKernelsCostTheirTapsOrAWholeMacStep) {
  const auto machine = require(makeMachine("ethos-u85-128", "", "Sram_Only"));
  KernelOperation op;
  op.ifm.height = op.ifm.width = op.ofm.height = op.ofm.width = op.ofm.width0 = 32;
  op.ifm.depth = op.ofm.depth = 32;
  op.weights.emplace();
  op.weights->traversal = Traversal::PartKernelFirst;
  op.microblock = {1, 1, 16};
  op.block = {16, 16, 16};
  const auto macs = [&](const char* rules) {
    TimingContext context;
    context.machine = &machine;
    context.rules = timing::findRules(rules);
    return estimate(op, context).mac;
  };
  for (const auto& [type, step] : {std::pair(ElementType::Int8, 4), std::pair(ElementType::Int16, 2)}) {
    op.ifm.type = type;
    for (const int taps : {1, 2, 3, 4, 5}) {
      op.kernel.width = taps;
      EXPECT_EQ(macs("small-kernels") * taps, macs("calibrated") * std::max(taps, step)) << taps;
    }
  }
  op.kernel.width = 5;
  EXPECT_EQ(macs("estimator") * 5, macs("calibrated") * 6);
}

// Settings for what the measurements leave open: each can be found by name and differs from all others in its
// results.
TEST(Timing, SettingsDiffer) {
  const auto machine =
      require(makeMachine("ethos-u85-256", "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"));
  KernelOperation deep;
  deep.ifm.height = deep.ifm.width = deep.ofm.height = deep.ofm.width = deep.ofm.width0 = 16;
  deep.ifm.depth = 8 * 64 + 20;
  deep.ofm.depth = 128;
  deep.ofm.layout = Layout::NHCWB16;
  deep.weights.emplace();
  deep.microblock = {2, 2, 8};
  deep.block = {8, 8, 16};
  deep.activation.min = -128;
  deep.activation.max = 127;
  KernelOperation shallow = deep;
  shallow.ifm.depth = 3;
  shallow.kernel.height = shallow.kernel.width = 7;
  shallow.weights->traversal = Traversal::PartKernelFirst;
  KernelOperation narrow = shallow;
  narrow.kernel.height = narrow.kernel.width = 1;
  KernelOperation add;
  add.kind = OperationKind::Elementwise;
  add.elementwise.mode = ElementwiseMode::Add;
  add.globalScale = true;
  add.ofm = shallow.ofm;
  add.ofm.height = add.ofm.width = add.ofm.width0 = 15;
  add.ofm.depth = 4;
  add.ifm = add.ofm;
  add.ifm2 = add.ofm;
  add.microblock = deep.microblock;
  add.block = {8, 8, 16};
  add.activation = deep.activation;
  add.blockDependency = 3;
  KernelOperation pool = add;
  pool.kind = OperationKind::Pool;
  pool.pool = PoolMode::Average;
  pool.ifm2.reset();
  pool.kernel.height = pool.kernel.width = 5;
  std::map<std::vector<int64_t>, std::string_view> figures;
  for (const timing::Rules& rules : timing::ruleSets()) {
    EXPECT_EQ(timing::findRules(rules.name), &rules);
    std::vector<int64_t> of;
    Timeline timeline(machine, rules);
    for (const KernelOperation& op : {deep, shallow, narrow, pool, add, add}) {
      TimingContext context;
      context.machine = &machine;
      context.rules = &rules;
      const OperationCost cost = estimate(op, context);
      of.insert(of.end(), {cost.npu, cost.traffic[1].readBytes, cost.traffic[1].writeBytes});
      timeline.add(op, context, 0);
    }
    of.push_back(timeline.total());
    DmaOperation transfer;
    transfer.destination.region = 2;
    transfer.length = 256;
    of.push_back(timeline.add(Operation(transfer), 0)->end);
    const auto known = figures.emplace(of, rules.name);
    EXPECT_TRUE(known.second) << rules.name << " and " << known.first->second << " give the same results";
  }
  EXPECT_EQ(timing::ruleSets().front().name, "calibrated");
  EXPECT_EQ(timing::findRules("guessed"), nullptr);
}

// U55-128: 3x3 convolution 13x13x32 -> 11x11x64: block 5x12x16 has IB_END 10 and AB_START 14; 11x6x16 does
// not fit.
TEST(BlockRules, WorkedShramLayout) {
  const auto target = findTarget("ethos-u55-128");
  KernelOperation op;
  op.ifm.depth = 32;
  op.ofm.height = op.ofm.width = 11;
  op.ofm.depth = 64;
  op.kernel.height = op.kernel.width = 3;
  op.weights.emplace();
  const BlockRules rules(**target, op);
  const auto layout = rules.shram({5, 12, 16});
  ASSERT_TRUE(layout);
  EXPECT_EQ(*layout, (ShramLayout{10, 0, 14}));
  EXPECT_EQ(rules.ifmBlock({5, 12, 16}), (BlockShape{7, 14, 32}));
  EXPECT_FALSE(rules.shram({11, 6, 16}));
  EXPECT_TRUE(rules.fits({5, 12, 16}));
  EXPECT_FALSE(rules.fits({5, 11, 16}));
  EXPECT_FALSE(rules.check({5, 11, 16}).ok());
}

TEST(BlockRules, MicroblocksFollowTheCode) {
  const auto target = findTarget("ethos-u85-1024");
  EXPECT_EQ(microblockFromCode(**target, 4), (BlockShape{2, 4, 16}));
  EXPECT_EQ(microblockFromCode(**target, 3), (BlockShape{2, 2, 32}));
  EXPECT_FALSE(microblockFromCode(**target, 5));
  EXPECT_FALSE(microblockFromCode(**target, 9));
}

TEST(Timeline, DmaAndKernelsOverlapUntilAWait) {
  const auto machine = require(makeMachine("ethos-u55-128", "", ""));
  SmallProgram program("ethos-u55-128");
  const KernelOperation op = program.copy(16, 16, 16, ElementType::Int8, std::vector<int64_t>(4096, 1));
  KernelOperation placed = op;
  placed.block = {8, 8, 16};
  DmaOperation dma;
  dma.source.region = 0;
  dma.destination.region = 1;
  dma.length = 4096;
  Timeline together(machine), apart(machine);
  const auto transfer = together.add(Operation(dma), 0);
  const auto kernel = together.add(Operation(placed), 4);
  together.add(Operation(DmaWait{0}), 8);
  const auto transferFirst = apart.add(Operation(dma), 0);
  EXPECT_FALSE(apart.add(Operation(DmaWait{0}), 4));
  const auto kernelAfter = apart.add(Operation(placed), 8);
  ASSERT_TRUE(transfer && kernel && transferFirst && kernelAfter);
  EXPECT_LT(together.total(), apart.total());
  EXPECT_GE(together.total(), std::max(transfer->cost.total, kernel->cost.total));
  EXPECT_GE(kernelAfter->start, transferFirst->end);
  EXPECT_GT(apart.pmu().readBeats[1], 4096 / 8 - 1);
}

// A transfer into SRAM that kernels keep busy: it gets every other access of the port, or waits for the
// kernels.
TEST(Timeline, TransfersTakeTurnsWithKernelsAtAPort) {
  auto machine = require(makeMachine("ethos-u55-128", "", ""));
  machine.system.ports[0].clockScale = 0.25;  // the port limits the kernel
  SmallProgram program("ethos-u55-128");
  KernelOperation op = program.copy(64, 64, 16, ElementType::Int8, std::vector<int64_t>(65536, 1));
  op.block = {8, 8, 16};
  DmaOperation dma;
  dma.source.region = dma.destination.region = 1;
  dma.destination.address = 65536;
  dma.length = 1024;
  Timeline turns(machine), waits(machine, *timing::findRules("transfers-wait"));
  for (Timeline* line : {&turns, &waits}) line->add(Operation(op), 0);
  const ScheduledCost beside = *turns.add(Operation(dma), 4), after = *waits.add(Operation(dma), 4);
  const Cycles busy = estimate(op, TimingContext::fromRegions(machine, op)).port[0];
  EXPECT_GT(busy, 2 * beside.cost.total);
  EXPECT_LE(beside.end, beside.start + 2 * beside.cost.total);
  EXPECT_GT(after.end, beside.end);  // the kernel leaves less than half
  // The port still carries the data of both.
  turns.add(Operation(op), 8);
  EXPECT_GE(turns.total(), 2 * busy + beside.cost.port[0]);
}

TEST(Timeline, BlockdepShortensTheTimeLine) {
  const auto machine = makeMachine("ethos-u85-256", "", "");
  SmallProgram program("ethos-u85-256");
  KernelOperation op = program.copy(16, 16, 16, ElementType::Int8, std::vector<int64_t>(4096, 1));
  op.microblock = {1, 2, 16};
  op.block = {4, 16, 16};
  Timeline strict(*machine), loose(*machine);
  for (Timeline* line : {&strict, &loose}) {
    op.blockDependency = line == &loose ? 7 : 0;
    for (uint32_t i = 0; i < 3; ++i) line->add(Operation(op), i * 4);
  }
  EXPECT_LT(loose.total(), strict.total());
  EXPECT_GT(strict.pmu().blockdepStall, 0);
}

// A pooling layer with feature maps in DRAM, whose adapter lets nothing through from cycle 1,750 to 2,750:
// layers that would end in between end afterwards. Longer ones lose, every 5,000 cycles, the time that their
// read buffers do not cover.
TEST(Timeline, KernelsStallBetweenPulses) {
  auto machine = require(makeMachine("ethos-u85-256", "Ethos_U85_SYS_DRAM_Low", "Dedicated_Sram"));
  SmallProgram program("ethos-u85-256");
  const auto ends = [&](int32_t height, uint8_t region) {
    KernelOperation op =
        program.copy(height, 16, 16, ElementType::Int8, std::vector<int64_t>(256 * height, 1));
    op.ifm.region = op.ofm.region = region;
    op.microblock = {1, 2, 16};
    op.block = {4, 16, 16};
    Timeline line(machine);
    line.add(Operation(op), 0);
    return line.total();
  };
  const auto pulsed = [&](int32_t height, uint8_t region) {
    MemoryTiming& dram = machine.system.ports[1];
    dram.pulseOn = 4000;
    dram.pulseOff = 1000;
    dram.firstPulse = 1750;
    const Cycles end = ends(height, region);
    dram.pulseOn = dram.pulseOff = dram.firstPulse = 0;
    return end;
  };
  constexpr uint8_t kDram = 1, kCache = 2;
  const Cycles shortest = ends(4, kDram), longest = ends(256, kDram);
  ASSERT_LT(shortest, 1750);
  ASSERT_GT(longest, 15000);
  EXPECT_EQ(pulsed(4, kDram), shortest);
  EXPECT_EQ(pulsed(256, kCache), ends(256, kCache));
  const Cycles periods = longest / 4000 + 1;
  EXPECT_GT(pulsed(256, kDram), longest + (periods - 2) * 500);
  EXPECT_LE(pulsed(256, kDram), longest + periods * 1000);
  for (int32_t height = 4; height < 64; height += 4) {
    const Cycles end = pulsed(height, kDram);
    EXPECT_TRUE(end <= 1750 || end >= 2750) << height << " rows end at " << end;
    EXPECT_GE(end, ends(height, kDram));
  }
}

TEST(Timing, SlowerMemoryNeverMakesAnOperationFaster) {
  const auto fast = require(makeMachine("ethos-u85-256", "Ethos_U85_SYS_DRAM_Mid", "Sram_Only"));
  const auto slow = require(makeMachine("ethos-u85-256", "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram"));
  SmallProgram program("ethos-u85-256");
  KernelOperation op = program.copy(32, 32, 16, ElementType::Int8, std::vector<int64_t>(16384, 1));
  op.microblock = {1, 2, 16};
  op.block = {8, 16, 16};
  EXPECT_LT(estimate(op, TimingContext::fromRegions(fast, op)).total,
            estimate(op, TimingContext::fromRegions(slow, op)).total);
}

DmaOperation transfer(uint64_t bytes) {
  DmaOperation dma;
  dma.source.region = dma.destination.region = 1;
  dma.destination.address = 1 << 20;
  dma.length = bytes;
  return dma;
}

TEST(LongestPath, IsTheTimelineWithoutBranches) {
  const auto machine = require(makeMachine("ethos-u85-256", "", ""));
  const std::vector<PlacedOperation> operations{{transfer(4096), 0}, {transfer(64), 4}, {Stop{}, 8}};
  Timeline line(machine);
  for (const PlacedOperation& placed : operations) line.add(placed.operation, placed.offset);
  EXPECT_EQ(longestPath(operations, machine), line.total());
}

TEST(LongestPath, FollowsTheLongerSideOfABranch) {
  const auto machine = require(makeMachine("ethos-u85-256", "", ""));
  const auto choice = [&](uint64_t whenFalse, uint64_t whenTrue) {
    return longestPath(std::vector<PlacedOperation>{{Branch{true, 16}, 0},
                                                    {transfer(whenFalse), 8},
                                                    {Branch{false, 20}, 12},
                                                    {transfer(whenTrue), 16},
                                                    {Stop{}, 20}},
                       machine);
  };
  const Cycles apart = choice(65536, 64) - choice(64, 64);
  EXPECT_GT(apart, 0);
  EXPECT_NEAR(static_cast<double>(choice(64, 65536) - choice(64, 64)), static_cast<double>(apart), 8);
  EXPECT_NEAR(static_cast<double>(choice(65536, 65536) - choice(64, 64)), static_cast<double>(apart), 8);
}

TEST(LongestPath, CountsLoopIterations) {
  const auto machine = require(makeMachine("ethos-u85-256", "", ""));
  // The test follows the body.
  const std::vector<PlacedOperation> operations{
      {Branch{false, 12}, 0}, {transfer(65536), 8}, {transfer(64), 12}, {Branch{true, 8}, 16}, {Stop{}, 24}};
  const Cycles once = longestPath(operations, machine);
  const std::vector<CountedLoop> loops{{8, 24, 10}};
  const Cycles all = longestPath(operations, machine, timing::kCalibrated, loops);
  EXPECT_GT(once, estimate(transfer(65536), machine).total);
  EXPECT_GE(all, 10 * estimate(transfer(65536), machine).total);
  EXPECT_LE(all, 10 * once);
  // Iteration counts that overflow saturate.
  const std::vector<CountedLoop> nested{{8, 24, int64_t{1} << 40}, {8, 16, int64_t{1} << 40}};
  EXPECT_GT(longestPath(operations, machine, timing::kCalibrated, nested), all);
}

}  // namespace
}  // namespace carina::test
