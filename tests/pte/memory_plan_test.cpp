// SPDX-License-Identifier: Apache-2.0
// Memory planning: which values share memory, and for how long they are live.
#include "pte/memory_plan.hpp"

#include <gtest/gtest.h>

namespace carina::pte {
namespace {

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
