// SPDX-License-Identifier: Apache-2.0
// Programs whose methods take and return numbers in addition to tensors, and programs of several methods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "device/run.hpp"
#include "pipeline/bundle_cases.hpp"
#include "pipeline/check.hpp"
#include "pte/bundle.hpp"
#include "pte/method_builder.hpp"
#include "support/require.hpp"

namespace carina {
namespace {

using testing::HasSubstr;

/// forward(x, 7) = (x, 7, 2.5, true); once(x) = x.
pte::Program program() {
  pte::Tensor tensor;
  tensor.sizes = {2};
  tensor.dimOrder = {0};
  tensor.allocation = pte::Allocation{1, 0};
  pte::Method forward;
  forward.values = {tensor, int64_t{7}, 2.5, true};
  forward.inputs = {0, 1};
  forward.outputs = {0, 1, 2, 3};
  forward.chains.push_back({});
  forward.pools = {0, 16};
  pte::Method once = forward;
  once.name = "once";
  once.inputs = once.outputs = {0};
  pte::Program result;
  result.methods = {forward, once};
  return result;
}

std::string fileOf(const pte::Program& program) {
  return require(pte::writeProgram(program));
}

const std::vector<Tensor> kInput = {Tensor::from<float>({2}, std::vector<float>{1.5F, -2.0F})};

TEST(ScalarValues, AreReturnedAsZeroDimensionalArrays) {
  const std::string file = fileOf(program());
  const auto outcome = require(device::runProgram(asBytes(file), kInput));
  ASSERT_EQ(outcome.outputs.size(), 4u);
  EXPECT_EQ(outcome.outputs[0], kInput[0]);
  EXPECT_EQ(outcome.outputs[1], Tensor::scalar(int64_t{7}));
  EXPECT_EQ(outcome.outputs[2], Tensor::scalar(2.5));
  EXPECT_EQ(outcome.outputs[3].dtype(), DType::Bool);
  EXPECT_EQ(outcome.outputs[3].integerAt(0), 1);

  const auto check = require(pipeline::checkProgram(asBytes(file)));
  EXPECT_TRUE(check.ok()) << check.problems.front();
  EXPECT_EQ(check.methods[0].inputs[1].type, "number 7");
  EXPECT_EQ(check.methods[0].outputs[2].type, "number 2.5");
}

TEST(ScalarValues, TextAmongTheOutputsIsRefused) {
  pte::Program changed = program();
  changed.methods[0].values[2] = std::string("text");
  const std::string file = fileOf(changed);
  EXPECT_THAT(errorOf(device::runProgram(asBytes(file), kInput)),
              HasSubstr("output 2 is neither a tensor nor a number"));
}

TEST(ScalarValues, MemoryOutOfProportionToTheProgramIsRefused) {
  pte::Program changed = program();
  changed.methods[0].pools = {0, 16, int64_t{3} << 30};
  const std::string file = fileOf(changed);
  const std::string error = errorOf(device::runProgram(asBytes(file), kInput));
  EXPECT_THAT(error, HasSubstr("bytes of memory, the limit for a program of"));
  const auto check = require(pipeline::checkProgram(asBytes(file)));
  ASSERT_FALSE(check.ok());
  EXPECT_THAT(check.problems.front(), HasSubstr("asks for more than"));
  // Memory that is only declared costs nothing.
  changed.methods[0].pools = {0, 16, int64_t{1} << 28};
  EXPECT_TRUE(device::runProgram(asBytes(fileOf(changed)), kInput).ok());
}

TEST(ScalarValues, MethodsAreChosenByName) {
  const std::string file = fileOf(program());
  device::RunOptions options;
  options.method = "once";
  const auto outcome = require(device::runProgram(asBytes(file), kInput, options));
  EXPECT_EQ(outcome.outputs.size(), 1u);
  options.method = "twice";
  EXPECT_THAT(errorOf(device::runProgram(asBytes(file), kInput, options)), HasSubstr("twice"));
}

TEST(ScalarValues, BundlesCompareThem) {
  pte::Bundle bundle;
  const std::string file = fileOf(program());
  bundle.program.assign(asBytes(file).begin(), asBytes(file).end());
  const pte::BundleTensor x = pte::fromTensor(kInput[0]);
  bundle.suites = {{"forward", {{{x, int64_t{7}}, {x, int64_t{7}, 2.5, true}}}}, {"once", {{{x}, {x}}}}};
  const auto good = require(pipeline::runCases(bundle, {}, {}));
  ASSERT_EQ(good.cases.size(), 2u);
  EXPECT_TRUE(good.cases[0].passed) << good.cases[0].mismatch;

  device::RunOptions once;
  once.method = "once";
  const auto one = require(pipeline::runCases(bundle, once, {}));
  ASSERT_EQ(one.cases.size(), 1u);
  EXPECT_EQ(one.cases[0].method, "once");
  once.method = "twice";
  EXPECT_THAT(pipeline::runCases(bundle, once, {}).error().str(), HasSubstr("no test case of method twice"));

  bundle.suites[0].cases[0].expected[1] = int64_t{8};
  const auto bad = require(pipeline::runCases(bundle, {}, {}));
  EXPECT_FALSE(bad.cases[0].passed);
  EXPECT_THAT(bad.cases[0].mismatch, HasSubstr("output 1"));

  bundle.suites[0].cases[0].inputs[1] = int64_t{9};
  EXPECT_THAT(errorOf(pipeline::runCases(bundle, {}, {})), HasSubstr("input 1 differs from the number"));
}

}  // namespace
}  // namespace carina
