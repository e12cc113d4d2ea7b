// SPDX-License-Identifier: Apache-2.0
// Limits of the work that a program causes on the host: kernels and NPU jobs of one execution share a budget
// of steps.
#include "base/work_budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/run.hpp"
#include "npu/model/model.hpp"
#include "pte/program.hpp"
#include "support/require.hpp"

namespace carina::device {
namespace {

using testing::HasSubstr;

pte::Tensor square(int32_t side, uint64_t slot) {
  pte::Tensor tensor;
  tensor.sizes = {side, side};
  tensor.dimOrder = {0, 1};
  tensor.allocation =
      pte::Allocation{1, slot * 4 * static_cast<uint64_t>(side) * static_cast<uint64_t>(side)};
  return tensor;
}

/// x @ x, `calls` times; with `again`, forever. `spare`: bytes of unused memory.
std::string products(int32_t side, size_t calls, bool again = false, int64_t spare = 0) {
  pte::Method method;
  method.values = {square(side, 0), square(side, 1), false};
  method.inputs = {0};
  method.outputs = {1};
  method.pools = {0, 8 * int64_t{side} * side + spare};
  method.operators = {{"aten::mm", "out"}};
  pte::Chain chain;
  for (size_t i = 0; i < calls; ++i) chain.instructions.push_back(pte::KernelCall{0, {0, 0, 1, 1}});
  if (again) chain.instructions.push_back(pte::JumpFalseCall{2, 0});
  method.chains = {chain};
  pte::Program program;
  program.methods = {method};
  return require(pte::writeProgram(program));
}

Result<RunOutcome> run(const std::string& program, int64_t side, bool trusted = false) {
  RunOptions options;
  options.trusted = trusted;
  const Tensor input = Tensor::zeros(DType::Float32, {side, side});
  return runProgram(std::as_bytes(std::span(program)), std::array{input}, options);
}

TEST(WorkBudget, GrantsWhatIsLeft) {
  WorkBudget budget(100);
  EXPECT_TRUE(budget.take(60, "first"));
  EXPECT_EQ(budget.refused(), "");
  EXPECT_FALSE(budget.take(60, "second"));
  EXPECT_THAT(budget.refused(), HasSubstr("second: 60 steps"));
  EXPECT_EQ(budget.left(), 40);
  budget.spend(60);
  EXPECT_EQ(budget.left(), 0);
  budget.renew();
  EXPECT_EQ(budget.left(), 100);
  EXPECT_EQ(budget.refused(), "");
}

TEST(WorkBudget, KernelsBeyondTheBudgetAreNotStarted) {
  EXPECT_TRUE(run(products(64, 3), 64).ok());
  const auto large = run(products(4096, 1), 4096);  // 69 G multiply-accumulates in a file of a kilobyte
  ASSERT_FALSE(large.ok());
  EXPECT_THAT(large.error().str(), HasSubstr("aten::mm"));
  EXPECT_THAT(large.error().str(), HasSubstr("--trusted"));
}

TEST(WorkBudget, TrustedProgramsHaveNone) {
  const std::string program = products(64, 2, false, int64_t{1} << 30);
  EXPECT_FALSE(run(program, 64).ok());
  EXPECT_TRUE(run(program, 64, true).ok());
}

TEST(WorkBudget, CoversAllCallsAndIsRenewedPerExecution) {
  EXPECT_THAT(errorOf(run(products(64, 1, true), 64)), HasSubstr("are spent"));
  const std::string program = products(256, 8);
  auto runner = require(Runner::open(std::as_bytes(std::span(program))));
  const Tensor input = Tensor::zeros(DType::Float32, {256, 256});
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(runner.run(std::array{input}).ok()) << i;
  EXPECT_FALSE(run(products(256, 256), 256).ok());
}

}  // namespace
}  // namespace carina::device
