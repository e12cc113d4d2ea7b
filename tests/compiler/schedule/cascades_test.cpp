// SPDX-License-Identifier: Apache-2.0
// The choice of cascades: as good as the best of all groupings of a chain of passes.
#include "compiler/schedule/cascades.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "base/shape.hpp"

namespace carina::compiler {
namespace {

constexpr int32_t kHeight = 20;
constexpr npu::Cycles kBehindPerRow = 30;  // extra cost of a feature map behind the cache
constexpr npu::Cycles kPerStripe = 40;

/// Consecutive passes, each with a window of one or three rows, and their feature maps.
struct Chain {
  std::vector<npu::KernelOperation> operations;
  std::vector<npu::Cycles> perRow;
  CascadeProblem problem;

  Chain(const std::vector<int64_t>& rowBytes, std::vector<npu::Cycles> cyclesPerRow,
        const std::vector<bool>& window)
      : perRow(std::move(cyclesPerRow)) {
    const auto count = static_cast<int32_t>(perRow.size());
    for (int32_t p = 0; p < count; ++p) {
      npu::KernelOperation op;
      op.kind = npu::OperationKind::Depthwise;
      op.ifm.height = op.ofm.height = kHeight;
      op.kernel.height = window[static_cast<size_t>(p)] ? 3 : 1;
      op.padding.top = op.padding.bottom = op.kernel.height / 2;
      operations.push_back(op);
    }
    for (int32_t p = 0; p < count; ++p) {
      CascadePass pass;
      pass.operation = &operations[static_cast<size_t>(p)];
      pass.ifmProducer = p - 1;
      pass.buffer = p;
      pass.rowBytes = rowBytes[static_cast<size_t>(p)];
      if (p + 1 < count) {
        pass.rollsFrom = p;
        pass.rollsUntil = p + 1;
      }
      problem.passes.push_back(pass);
      problem.buffers.push_back({pass.rowBytes * kHeight, p, p + 1});
    }
    problem.cycles = [this](int32_t p, int32_t rows, MapsBehind behind) {
      return 20 + rows * (perRow[static_cast<size_t>(p)] + kBehindPerRow * (behind.ifm + behind.ofm));
    };
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  bool isBehind(int32_t p) const {
    return problem.buffers[static_cast<size_t>(p)].bytes > problem.maxCachedMapBytes;
  }

  /// Cycles of a group of passes [first, last] that computes `rows` rows at a time (0: a single pass as a
  /// whole); nullopt if it needs more than `limit` bytes.
  std::optional<npu::Cycles> cyclesOf(const Group& group, int64_t limit) const {
    const auto whole = [&](int32_t p) {
      return p < 0 || isBehind(p) ? 0 : roundUp(problem.buffers[static_cast<size_t>(p)].bytes, 16);
    };
    int64_t bytes = whole(group.first - 1) + whole(group.last);
    MapsBehind ends;
    ends.ifm = group.first > 0 && isBehind(group.first - 1);
    ends.ofm = isBehind(group.last);
    if (group.rows == 0) {
      if (bytes > limit) return std::nullopt;
      return problem.cycles(group.first, kHeight, ends);
    }
    const auto plan = planStripes(stripedPasses(problem, group), group.rows);
    if (!plan) return std::nullopt;
    for (int32_t p = group.first; p < group.last; ++p) {
      bytes += roundUp(
          problem.passes[static_cast<size_t>(p)].rowBytes * plan->held[static_cast<size_t>(p - group.first)],
          16);
    }
    if (bytes > limit) return std::nullopt;
    npu::Cycles cycles = 0;
    for (const Stripe& stripe : plan->stripes) {
      const int32_t p = group.first + stripe.pass;
      const MapsBehind behind{p == group.first && ends.ifm, false, p == group.last && ends.ofm};
      cycles += problem.cycles(p, stripe.end - stripe.begin, behind) + kPerStripe;
    }
    return cycles;
  }

  /// The fewest cycles of all groupings of the passes from `first` on.
  std::optional<npu::Cycles> fewestCycles(int32_t first, int64_t limit) const {
    const auto count = static_cast<int32_t>(problem.passes.size());
    if (first == count) return 0;
    std::optional<npu::Cycles> best;
    for (int32_t last = first; last < count; ++last) {
      const auto rest = fewestCycles(last + 1, limit);
      if (!rest) continue;
      const std::vector<int32_t> heights =
          last == first ? std::vector<int32_t>{0} : std::vector<int32_t>{1, 2, 3, 4, 6, 8, 12, 16};
      for (const int32_t rows : heights) {
        const auto cycles = cyclesOf({first, last, rows}, limit);
        if (cycles && (!best || *cycles + *rest < *best)) best = *cycles + *rest;
      }
    }
    return best;
  }
};

RC_GTEST_PROP(Cascades, ChoosesTheFastestGroupsThatFit, ()) {
  const auto count = static_cast<size_t>(*rc::gen::inRange(2, 7));
  Chain chain(*rc::gen::container<std::vector<int64_t>>(count, rc::gen::inRange<int64_t>(1, 100)),
              *rc::gen::container<std::vector<npu::Cycles>>(count, rc::gen::inRange<npu::Cycles>(5, 60)),
              *rc::gen::container<std::vector<bool>>(count, rc::gen::arbitrary<bool>()));
  const int64_t limit = *rc::gen::inRange<int64_t>(100, 4000);
  if (*rc::gen::arbitrary<bool>()) chain.problem.maxCachedMapBytes = limit / *rc::gen::inRange<int64_t>(1, 5);
  const Grouping chosen = chooseGroups(chain.problem, limit);
  const auto expected = chain.fewestCycles(0, limit);
  if (!expected) {
    RC_ASSERT(chosen.bytes > limit);
    return;
  }
  RC_ASSERT(chosen.bytes <= limit);
  RC_ASSERT(chosen.cycles == *expected);
}

TEST(Cascades, MapsBehindTheCacheLeaveSpaceForTallerStripes) {
  // In one cascade, six passes can compute only one row at a time. Moving a feature map of 1,600 bytes behind
  // the cache splits it into two cascades.
  Chain chain({80, 80, 80, 80, 80, 10}, std::vector<npu::Cycles>(6, 20), std::vector<bool>(6, true));
  const Grouping inside = chooseGroups(chain.problem, 1900);
  chain.problem.maxCachedMapBytes = 1000;
  const Grouping behind = chooseGroups(chain.problem, 1900);
  ASSERT_EQ(inside.groups.size(), 1u);
  EXPECT_EQ(inside.groups.front().rows, 1);
  EXPECT_LE(behind.bytes, 1900);
  EXPECT_LT(behind.cycles, inside.cycles);
  for (const Group& group : behind.groups) EXPECT_GT(group.rows, 4);
}

}  // namespace
}  // namespace carina::compiler
