// SPDX-License-Identifier: Apache-2.0
// Memory planning: blocks that are live at the same time do not overlap, and little memory is wasted.
#include "pte/memory_plan.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace carina::pte {
namespace {

TEST(MemoryPlan, ReusesDeadBlocks) {
  // Two floats quantized to bytes, added, dequantized: the chain of a small delegated program.
  const std::vector<Lifetime> lifetimes = {{4, 0, 1}, {4, 0, 2}, {1, 1, 3}, {1, 2, 3}, {1, 3, 4}, {4, 4, 5}};
  const Plan plan = planBlocks(lifetimes, 16);
  EXPECT_EQ(plan.bytes, 48);
  EXPECT_EQ(planLowerBound(lifetimes, 16), 48);
}

TEST(MemoryPlan, LargestFirst) {
  const std::vector<Lifetime> lifetimes = {{16, 0, 1}, {1000, 1, 2}, {16, 2, 3}};
  const Plan plan = planBlocks(lifetimes, 16);
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{1008, 0, 1008}));
  EXPECT_EQ(plan.bytes, 1024);
}

TEST(MemoryPlan, EmptyBlocksCostNothing) {
  EXPECT_EQ(planBlocks(std::vector<Lifetime>{{0, 0, 9}, {0, 3, 4}}, 16).bytes, 0);
}

RC_GTEST_PROP(MemoryPlan, NeverOverlaps, ()) {
  const auto raw = *rc::gen::container<std::vector<std::tuple<int, int, int>>>(
      rc::gen::tuple(rc::gen::inRange(0, 500), rc::gen::inRange(0, 20), rc::gen::inRange(0, 8)));
  std::vector<Lifetime> lifetimes;
  int64_t total = 0;
  for (const auto& [bytes, first, length] : raw) {
    lifetimes.push_back({bytes, first, first + length});
    total += roundUp(bytes, 16);
  }
  const Plan plan = planBlocks(lifetimes, 16);
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    RC_ASSERT(plan.offsets[i] % 16 == 0);
    RC_ASSERT(plan.offsets[i] + lifetimes[i].bytes <= plan.bytes);
    for (size_t k = 0; k < i; ++k) {
      const bool together =
          lifetimes[i].first <= lifetimes[k].last && lifetimes[k].first <= lifetimes[i].last;
      const bool overlap = plan.offsets[i] < plan.offsets[k] + lifetimes[k].bytes &&
                           plan.offsets[k] < plan.offsets[i] + lifetimes[i].bytes;
      RC_ASSERT(!(together && overlap && lifetimes[i].bytes > 0 && lifetimes[k].bytes > 0));
    }
  }
  RC_ASSERT(plan.bytes >= planLowerBound(lifetimes, 16));
  RC_ASSERT(plan.bytes <= total);
}

Method chainOf(std::vector<Value> values, std::vector<Instruction> instructions) {
  Method method;
  method.values = std::move(values);
  method.chains.push_back({{}, {}, std::move(instructions)});
  method.operators.push_back({"aten::relu", "out"});
  return method;
}
Tensor bytes(int32_t count) {
  Tensor tensor;
  tensor.type = ScalarType::Int8;
  tensor.sizes = {count};
  tensor.dimOrder = {0};
  return tensor;
}
uint64_t offsetOf(const Method& method, size_t value) {
  return std::get<Tensor>(method.values[value]).allocation->offset;
}

TEST(MemoryPlan, SourceOfAMoveLivesAsLongAsItsTarget) {
  // %2 = %0, then %1 is written, then %2 read: %1 must not use %0's bytes.
  Method method =
      chainOf({bytes(64), bytes(64), bytes(64), bytes(64)},
              {KernelCall{0, {3, 0, 0}}, MoveCall{0, 2}, KernelCall{0, {3, 1, 1}}, KernelCall{0, {2, 3, 3}}});
  ASSERT_TRUE(planMethodMemory(method, {}, {}).ok());
  EXPECT_NE(offsetOf(method, 0), offsetOf(method, 1));
}

TEST(MemoryPlan, LoopsKeepTheirValues) {
  // %0 is read at the start of a loop and must survive %1 and %2, which are written later in the loop.
  std::vector<Value> values = {bytes(64), bytes(64), bytes(64), true};
  Method method =
      chainOf(std::move(values), {KernelCall{0, {0, 1, 1}}, KernelCall{0, {1, 2, 2}}, JumpFalseCall{3, 0}});
  method.inputs = {0};
  ASSERT_TRUE(planMethodMemory(method, {}, {}).ok());
  EXPECT_NE(offsetOf(method, 0), offsetOf(method, 2));
}

TEST(MemoryPlan, ValuesOfOneLoopIterationShareMemory) {
  // %1 is written and read at the start of each iteration, %2 at its end; %0 is carried between iterations.
  Method method = chainOf({bytes(64), bytes(64), bytes(64), true},
                          {KernelCall{0, {0, 0, 0}}, KernelCall{0, {0, 1, 1}}, KernelCall{0, {1, 0, 0}},
                           KernelCall{0, {0, 2, 2}}, KernelCall{0, {2, 0, 0}}, JumpFalseCall{3, 1}});
  Method known = method;
  ASSERT_TRUE(planMethodMemory(method, {}, {}).ok());
  EXPECT_NE(offsetOf(method, 1), offsetOf(method, 2))
      << "without birth times, values may be live across iterations";
  const std::vector<int64_t> born{0, 1, 3, 0};
  ASSERT_TRUE(planMethodMemory(known, {}, {}, born).ok());
  EXPECT_EQ(offsetOf(known, 1), offsetOf(known, 2));
  EXPECT_NE(offsetOf(known, 0), offsetOf(known, 1));
}

TEST(MemoryPlan, AViewInALoopIsBornWithItsSource) {
  // %1 is a view of the input %0, created and read in the loop. %2 is written after it and must not use %0's
  // bytes.
  Method method = chainOf({bytes(64), bytes(64), bytes(64), bytes(64), true},
                          {KernelCall{0, {3, 3, 3}}, KernelCall{0, {1, 3, 3}}, KernelCall{0, {3, 2, 2}},
                           KernelCall{0, {2, 3, 3}}, JumpFalseCall{4, 1}});
  method.inputs = {0};
  const std::vector<int64_t> born{0, 1, 2, 0, 0};
  ASSERT_TRUE(planMethodMemory(method, {{1, 0}}, {}, born).ok());
  EXPECT_EQ(offsetOf(method, 0), offsetOf(method, 1));
  EXPECT_NE(offsetOf(method, 0), offsetOf(method, 2));
}

TEST(MemoryPlan, ViewsShareTheirBytes) {
  Method method =
      chainOf({bytes(64), bytes(64), bytes(64)}, {KernelCall{0, {0, 1, 1}}, KernelCall{0, {2, 0, 0}}});
  ASSERT_TRUE(planMethodMemory(method, {{2, 1}}, {}).ok());
  EXPECT_EQ(offsetOf(method, 1), offsetOf(method, 2));
  EXPECT_NE(offsetOf(method, 0), offsetOf(method, 1));
}

}  // namespace
}  // namespace carina::pte
