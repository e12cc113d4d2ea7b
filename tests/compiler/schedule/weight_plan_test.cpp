// SPDX-License-Identifier: Apache-2.0
// Plans for weights in slow memory: what is copied, when it arrives, and that it fits.
#include "compiler/schedule/weight_plan.hpp"

#include <gtest/gtest.h>

#include <random>

namespace carina::test {
namespace {

using compiler::Fetch;
using compiler::kNoPath;
using compiler::planWeights;
using compiler::WeightPath;
using compiler::WeightPlan;
using compiler::WeightProblem;
using compiler::WeightUse;

/// One byte per cycle; groups of 1000 cycles.
WeightProblem problemOf(size_t groups, int64_t freeBytes) {
  WeightProblem problem;
  problem.groups.assign(groups, {1000, 0, 1000, freeBytes});
  problem.speed = {1.0, 10, 1};
  return problem;
}

/// `direct`: cycles if the weights are read in place.
WeightUse useOf(int32_t group, int32_t set, int64_t bytes, npu::Cycles direct) {
  WeightUse use;
  use.group = group;
  use.set = set;
  use.bytes = bytes;
  use.costs = {{{direct, direct}, {1000, 0}}};
  return use;
}

void expectSound(const WeightProblem& problem, const WeightPlan& plan) {
  ASSERT_EQ(plan.uses.size(), problem.uses.size());
  std::vector<int64_t> live(problem.groups.size(), 0);
  for (size_t u = 0; u < plan.uses.size(); ++u) {
    const auto& planned = plan.uses[u];
    const WeightUse& use = problem.uses[u];
    EXPECT_NE(use.costs[static_cast<size_t>(planned.path)].cycles, kNoPath);
    int64_t offset = 0;
    for (const Fetch& fetch : planned.fetches) {
      EXPECT_EQ(fetch.offset, offset);
      EXPECT_GE(fetch.during, planned.liveFirst);
      EXPECT_LT(fetch.during, use.group);
      offset += fetch.bytes;
    }
    if (planned.path != WeightPath::Whole) {
      EXPECT_TRUE(planned.fetches.empty());
      if (isSliced(planned.path)) {
        const auto& cost = use.costs[static_cast<size_t>(planned.path)];
        live[static_cast<size_t>(use.group)] += cost.slices > 1 ? 2 * cost.sliceBytes : cost.sliceBytes;
        if (use.group > 0) live[static_cast<size_t>(use.group) - 1] += cost.sliceBytes;
      }
      continue;
    }
    if (planned.copyOf >= 0) {
      const auto& copy = plan.uses[static_cast<size_t>(planned.copyOf)];
      EXPECT_EQ(problem.uses[static_cast<size_t>(planned.copyOf)].set, use.set);
      EXPECT_LE(copy.liveFirst, use.group);
      EXPECT_GE(copy.liveLast, use.group);
      continue;
    }
    EXPECT_EQ(offset, use.bytes);
    for (int32_t g = std::max(planned.liveFirst, 0); g <= planned.liveLast; ++g) {
      live[static_cast<size_t>(g)] += use.bytes;
    }
  }
  for (size_t g = 0; g < live.size(); ++g) EXPECT_LE(live[g], problem.groups[g].freeBytes) << "group " << g;
}

TEST(WeightPlan, WeightsThatAreReadOnceAreReadInPlace) {
  WeightProblem problem = problemOf(3, 100000);
  problem.uses = {useOf(0, 0, 800, 1000), useOf(1, 1, 900, 1000), useOf(2, 2, 700, 1000)};
  const WeightPlan plan = planWeights(problem);
  expectSound(problem, plan);
  for (const auto& use : plan.uses) EXPECT_EQ(use.path, WeightPath::Direct);
  EXPECT_EQ(plan.cycles, 3000);
}

TEST(WeightPlan, LargeWeightsArriveInPiecesDuringEarlierGroups) {
  WeightProblem problem = problemOf(6, 100000);
  problem.uses = {useOf(5, 0, 4000, 9000)};
  const WeightPlan plan = planWeights(problem);
  expectSound(problem, plan);
  EXPECT_EQ(plan.uses[0].path, WeightPath::Whole);
  EXPECT_GE(plan.uses[0].fetches.size(), 3u);
  EXPECT_EQ(plan.cycles, 6000);
  // With free memory in the last two groups only, the kernel waits for most of the transfer.
  for (size_t g = 0; g < 4; ++g) problem.groups[g].freeBytes = 100;
  const WeightPlan late = planWeights(problem);
  expectSound(problem, late);
  EXPECT_EQ(late.uses[0].fetches.size(), 1u);
  EXPECT_EQ(late.uses[0].fetches[0].during, 4);
  EXPECT_GT(late.cycles, plan.cycles + 1500);
}

// Kernels that keep the port of the fast memory busy for nine tenths of the time leave a transfer enough:
// 3,500 bytes need it for an eighth of their transfer time.
TEST(WeightPlan, CopiesArriveWhileKernelsUseTheFastPort) {
  WeightProblem problem = problemOf(6, 100000);
  problem.speed.fastCyclesPerByte = 0.125;
  for (auto& group : problem.groups) group.fastPort = 900;
  problem.uses = {useOf(5, 0, 3500, 9000)};
  for (const auto sharing :
       {compiler::PortSharing::Waiting, compiler::PortSharing::Turns, compiler::PortSharing::Gaps}) {
    problem.sharing = sharing;
    const WeightPlan plan = planWeights(problem);
    expectSound(problem, plan);
    EXPECT_GE(plan.uses[0].fetches.size(), 4u);
    EXPECT_LE(plan.cycles, sharing == compiler::PortSharing::Gaps ? 6100 : 6200);
  }
}

TEST(WeightPlan, CopiesArriveNoEarlierThanTheyHaveTo) {
  WeightProblem problem = problemOf(20, 100000);
  problem.uses = {useOf(19, 0, 1800, 9000)};
  const WeightPlan plan = planWeights(problem);
  expectSound(problem, plan);
  EXPECT_EQ(plan.cycles, 20000);
  EXPECT_GE(plan.uses[0].liveFirst, 15);
}

// Norms and softmax take dozens of operations, most of them short.
TEST(WeightPlan, CopiesArriveDuringManyShortGroups) {
  WeightProblem problem = problemOf(200, 100000);
  for (auto& group : problem.groups) group.cycles = group.last = 300;
  problem.speed.latency = 0;
  problem.uses = {useOf(199, 0, 36000, 100000)};
  problem.uses[0].costs[static_cast<size_t>(WeightPath::Whole)].cycles = 300;
  const WeightPlan plan = planWeights(problem);
  expectSound(problem, plan);
  EXPECT_EQ(plan.cycles, 60000);
}

// Groups that are over before a transfer's latency is.
TEST(WeightPlan, LongPiecesArriveDuringSeveralGroups) {
  WeightProblem problem = problemOf(101, 100000);
  for (auto& group : problem.groups) group.cycles = group.last = 20;
  problem.speed.latency = 100;
  problem.uses = {useOf(100, 0, 1504, 9000)};
  EXPECT_EQ(planWeights(problem).cycles, 4584);  // 99 groups, the transfer behind the last of them, the use
  problem.longPieces = true;
  const WeightPlan plan = planWeights(problem);
  expectSound(problem, plan);
  EXPECT_EQ(plan.uses[0].fetches.size(), 1u);
  EXPECT_EQ(plan.cycles, 3000);
  // They are no longer in flight when another group needs the DMA engine.
  problem.groups[50].transfers = true;
  const WeightPlan pieces = planWeights(problem);
  expectSound(problem, pieces);
  ASSERT_EQ(pieces.uses[0].fetches.size(), 2u);
  EXPECT_LE(pieces.uses[0].fetches[0].bytes, 48 * 20 - 100);
  EXPECT_GE(pieces.uses[0].fetches[1].during, 49);
  EXPECT_EQ(pieces.cycles, 3000);
}

TEST(WeightPlan, CopiesThatAreReadAgainAreKept) {
  WeightProblem problem = problemOf(10, 5000);
  for (const int32_t g : {1, 4, 9}) problem.uses.push_back(useOf(g, 7, 3000, 4000));
  const WeightPlan plan = planWeights(problem);
  expectSound(problem, plan);
  EXPECT_EQ(plan.uses[0].fetches.size(), 1u);
  EXPECT_EQ(plan.uses[1].copyOf, 0);
  EXPECT_EQ(plan.uses[2].copyOf, 0);
  // Too little free memory between the second and the third use: fetched again, or read in place.
  problem.groups[6].freeBytes = 1000;
  const WeightPlan twice = planWeights(problem);
  expectSound(problem, twice);
  EXPECT_EQ(twice.uses[1].copyOf, 0);
  EXPECT_EQ(twice.uses[2].copyOf, -1);
}

TEST(WeightPlan, SlicesWeightsThatDoNotFitAsAWhole) {
  WeightProblem problem = problemOf(3, 2500);
  WeightUse use = useOf(2, 0, 8000, 50000);
  use.costs[static_cast<size_t>(WeightPath::Sliced)] = {9000, 0, 0, 1000, 8};
  problem.uses = {use};
  const WeightPlan plan = planWeights(problem);
  expectSound(problem, plan);
  EXPECT_EQ(plan.uses[0].path, WeightPath::Sliced);
}

TEST(WeightPlan, PrefersThickerSlicesIfTheyFit) {
  WeightProblem problem = problemOf(3, 2500);
  WeightUse use = useOf(2, 0, 8000, 50000);
  use.costs[static_cast<size_t>(WeightPath::Sliced)] = {20000, 0, 0, 500, 16};
  use.costs[static_cast<size_t>(WeightPath::ThickSlices)] = {12000, 0, 0, 1000, 8};
  use.costs[static_cast<size_t>(WeightPath::ThickestSlices)] = {9000, 0, 0, 2000, 4};
  problem.uses = {use};
  const WeightPlan plan = planWeights(problem);
  expectSound(problem, plan);
  EXPECT_EQ(plan.uses[0].path, WeightPath::ThickSlices);
  for (auto& group : problem.groups) group.freeBytes = 4000;
  EXPECT_EQ(planWeights(problem).uses[0].path, WeightPath::ThickestSlices);
}

TEST(WeightPlan, RandomPlansFitAndMemoryNeverCostsCycles) {
  std::mt19937 random(3);
  const auto roll = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 300; ++round) {
    WeightProblem problem = problemOf(static_cast<size_t>(roll(1, 30)), 0);
    problem.speed.outstanding = static_cast<int32_t>(roll(1, 4));
    problem.longPieces = roll(0, 1) == 1;
    for (size_t g = 0; g < problem.groups.size(); ++g) {
      problem.groups[g].freeBytes = roll(0, 8000);
      problem.groups[g].cycles = problem.groups[g].last = roll(10, 3000);
      problem.groups[g].transfers = roll(0, 3) == 0;
      if (roll(0, 1) == 0) continue;
      WeightUse use = useOf(static_cast<int32_t>(g), static_cast<int32_t>(roll(0, 5)), 0, 0);
      use.bytes = (use.set + 1) * 960;
      const npu::Cycles cycles = roll(10, 3000);
      use.costs = {{{cycles + roll(0, 4000), use.bytes}, {cycles, 0}}};
      for (int32_t slices = static_cast<int32_t>(roll(1, 4)), path = 4; slices > 1; --slices, --path) {
        use.costs[static_cast<size_t>(path)] = {cycles + slices * 20, 0, 0, use.bytes / slices / 16 * 16 + 16,
                                                slices};
      }
      problem.uses.push_back(use);
    }
    const WeightPlan plan = planWeights(problem);
    expectSound(problem, plan);
    WeightProblem none = problem;
    for (auto& group : none.groups) group.freeBytes = 0;
    const WeightPlan direct = planWeights(none);
    for (const auto& use : direct.uses) EXPECT_EQ(use.path, WeightPath::Direct);
    EXPECT_LE(plan.cycles, direct.cycles);
  }
}

}  // namespace
}  // namespace carina::test
