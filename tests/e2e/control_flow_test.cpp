// SPDX-License-Identifier: Apache-2.0
// Networks with torch.cond and torch.while_loop (models/control_flow.py), end to end: compiled for CPU and
// NPUs, run through the runtime, each NPU part equal to its TOSA graph and each kernel to the float executor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "pipeline/run.hpp"
#include "pipeline/verify.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

using testing::HasSubstr;

std::filesystem::path controlFile(const std::string& file) {
  return test::dataDir() / "control" / file;
}

Options optionsFor(const std::string& network, const std::string& target) {
  Options options;
  options.model = controlFile(network + ".pt2");
  if (target != "cpu") options.calibration = controlFile(network + ".npz");
  options.target = target;
  return options;
}

/// The arrays that torch computed with, as inputs of the program.
NamedTensors inputsOf(const NamedTensors& arrays) {
  NamedTensors inputs;
  while (const Tensor* samples = findTensor(arrays, fmt::format("calib{}", inputs.size())))
    inputs.emplace_back(fmt::format("in{}", inputs.size()), *samples);
  return inputs;
}

/// The largest error of any output, relative to the largest magnitude of torch's output.
double worstError(const NamedTensors& outputs, const NamedTensors& arrays) {
  double worst = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor* expected = findTensor(arrays, fmt::format("expected{}", i));
    CARINA_CHECK(expected && expected->numElements() == outputs[i].second.numElements(),
                 "torch computed this output");
    double error = 0, largest = 1e-6;
    for (int64_t k = 0; k < expected->numElements(); ++k) {
      error = std::max(error, std::abs(expected->realAt(k) - outputs[i].second.realAt(k)));
      largest = std::max(largest, std::abs(expected->realAt(k)));
    }
    worst = std::max(worst, error / largest);
  }
  return worst;
}

class ControlFlow : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(ControlFlow, ComputesWhatTorchComputes) {
  const auto& [network, target] = GetParam();
  auto built = require(build(optionsFor(network, target)));
  const auto arrays = require(readNpz(controlFile(std::string(network) + ".npz")));
  const NamedTensors inputs = inputsOf(arrays);

  test::TempDir folder;
  RunOptions options;
  options.file = folder / "program.pte";
  ASSERT_TRUE(writeOutput(built, options.file).ok());
  const auto ran = require(runFile(options, inputs));
  const bool cpu = std::string(target) == "cpu";
  EXPECT_LT(worstError(ran.outputs, arrays), cpu ? 1e-5 : 0.06);

  const auto samples = require(verificationSamples(built, inputs));
  const auto verified = require(verify(built, samples));
  EXPECT_TRUE(verified.ok());
  EXPECT_EQ(verified.delegateMismatches, 0);
  for (const CpuResult& node : verified.cpu) EXPECT_EQ(node.mismatches, 0) << node.where;
}

INSTANTIATE_TEST_SUITE_P(
    Networks, ControlFlow,
    testing::Combine(testing::Values("cond_zero_args_one_output", "cond_one_arg_one_output",
                                     "cond_one_arg_const_one_output", "cond_one_arg_and_scalar_one_output",
                                     "cond_one_arg_two_outputs", "cond_two_args_one_output",
                                     "cond_two_args_two_outputs", "cond_nested_one_arg_one_output",
                                     "cond_multiple_one_arg_one_output", "while_two_in_two_out",
                                     "while_one_in_one_buffer_two_out", "while_decreasing_output",
                                     "while_additional_arg", "while_two_in_one_captured_out",
                                     "while_large_threshold", "experts", "refine", "search", "same", "item"),
                     testing::Values("cpu", "ethos-u55-128", "ethos-u65-512", "ethos-u85-256")),
    [](const auto& instance) {
      std::string name = fmt::format("{}_{}", std::get<0>(instance.param), std::get<1>(instance.param));
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(ControlFlowParts, BranchesHaveTheirOwnNpuParts) {
  auto built = require(build(optionsFor("experts", "ethos-u65-512")));
  ASSERT_EQ(built.compiled.size(), 4u) << "stem, two branches, head";
  EXPECT_FALSE(built.partitioned.wholly);
  for (size_t i = 0; i < built.partitioned.delegates.size(); ++i)
    EXPECT_EQ(built.partitioned.delegates[i].tosa.name, fmt::format("npu{}", i));
  // A sample runs the parts of one branch.
  const auto arrays = require(readNpz(controlFile("experts.npz")));
  const auto samples = require(verificationSamples(built, inputsOf(arrays)));
  CARINA_CHECK(built.program.methods.size() == 1, "one method");
  const auto bytes = require(pte::writeProgram(built.program));
  auto runner = require(device::Runner::open(asBytes(bytes)));
  for (const quantize::Sample& sample : samples) {
    const auto outcome = require(runner.run(sample));
    EXPECT_EQ(outcome.stats.delegates.size(), 3u);
  }
}

class InStream : public testing::TestWithParam<const char*> {};

/// ExecuTorch's operator tests for U85, and ours that an NPU computes wholly: one command stream contains the
/// branches.
TEST_P(InStream, OnePartContainsTheBranches) {
  auto built = require(build(optionsFor(GetParam(), "ethos-u85-256")));
  ASSERT_EQ(built.compiled.size(), 1u);
  EXPECT_FALSE(built.compiled[0].branches.empty());
  for (const ir::Node* node : built.graph().nodes())
    EXPECT_TRUE(node->regions().size() != 2) << node->where();
}

INSTANTIATE_TEST_SUITE_P(Networks, InStream,
                         testing::Values("cond_zero_args_one_output", "cond_one_arg_one_output",
                                         "cond_one_arg_const_one_output",
                                         "cond_one_arg_and_scalar_one_output", "cond_one_arg_two_outputs",
                                         "cond_two_args_one_output", "cond_two_args_two_outputs",
                                         "cond_nested_one_arg_one_output", "cond_multiple_one_arg_one_output",
                                         "while_two_in_two_out", "while_one_in_one_buffer_two_out",
                                         "while_decreasing_output", "while_additional_arg",
                                         "while_two_in_one_captured_out", "while_large_threshold", "experts",
                                         "refine", "search", "same"),
                         [](const auto& instance) { return std::string(instance.param); });

/// Values in both branches, and in each iteration of a loop, are compared with the interpreter's.
TEST_P(InStream, ValuesInRegionsAreCompared) {
  auto built = require(build(optionsFor(GetParam(), "ethos-u85-256")));
  const auto arrays = require(readNpz(controlFile(std::string(GetParam()) + ".npz")));
  const auto samples = require(verificationSamples(built, inputsOf(arrays)));
  const auto verified = require(verify(built, samples));
  int inRegions = 0;
  for (const LayerResult& layer : verified.layers) {
    EXPECT_TRUE(layer.equal()) << layer.value << " of " << layer.where;
    EXPECT_GT(layer.elements, 0) << layer.value;
    inRegions += layer.value.ends_with(".result") || layer.where.find("_graph_") != std::string::npos;
  }
  // The branches of one network are constants.
  EXPECT_GT(inRegions, std::string(GetParam()) == "cond_zero_args_one_output" ? -1 : 0);
}

TEST(InStreamCompared, AChangedLoopBodyIsFoundInEachIteration) {
  auto built = require(build(optionsFor("refine", "ethos-u85-256")));
  const auto arrays = require(readNpz(controlFile("refine.npz")));
  const auto samples = require(verificationSamples(built, inputsOf(arrays)));
  // The interpreter multiplies with different weights from the NPU.
  size_t changed = 0;
  for (const ir::Node* node : built.partitioned.delegates[0].tosa.nodes()) {
    if (node->regions().empty()) continue;
    for (const auto& constant : node->region(1).constants()) {
      if (constant->dtype() != DType::Int8 || constant->shape().size() != 4) continue;
      Tensor other = Tensor::uninitialized(DType::Int8, constant->shape());
      for (int64_t i = 0; i < other.numElements(); ++i)
        other.setIntegerAt(i, -constant->constant().integerAt(i) / 2);
      constant->setConstant(std::move(other));
      ++changed;
    }
  }
  ASSERT_GT(changed, 0u);
  const auto verified = require(verify(built, std::span(samples).first(1)));
  EXPECT_FALSE(verified.ok());
  const auto found = std::find_if(verified.layers.begin(), verified.layers.end(),
                                  [](const LayerResult& layer) { return layer.mismatches > 0; });
  ASSERT_NE(found, verified.layers.end());
  EXPECT_EQ(found->value, "tanh.result");
  EXPECT_GT(found->turns, 1u);
  EXPECT_EQ(found->npuIterations, found->turns);
}

TEST(InStreamChosen, OnRequestTheProgramBranches) {
  Options options = optionsFor("experts", "ethos-u85-256");
  options.cpuOps = {"higher_order.cond"};
  const auto built = require(build(options));
  ASSERT_EQ(built.compiled.size(), 4u) << "stem, two branches, head";
  for (const compiler::CompiledProgram& part : built.compiled) EXPECT_TRUE(part.branches.empty());
}

TEST(InStreamChosen, AnOperatorKeptOffTheNpuKeepsItsBranchOff) {
  Options options = optionsFor("cond_one_arg_one_output", "ethos-u85-256");
  options.cpuOps = {"cos"};
  const auto built = require(build(options));
  for (const compiler::CompiledProgram& part : built.compiled) EXPECT_TRUE(part.branches.empty());
  const auto& refusals = built.partitioned.refusals;
  const auto about = [&](std::string_view op) {
    return std::find_if(refusals.begin(), refusals.end(),
                        [&](const auto& refusal) { return refusal.op == op; });
  };
  ASSERT_NE(about("higher_order.cond"), refusals.end());
  EXPECT_THAT(about("higher_order.cond")->reason, HasSubstr("kept off the NPU on request"));
  EXPECT_NE(about("aten.cos.default"), refusals.end());
  EXPECT_EQ(about("aten.sin.default"), refusals.end());
}

TEST(ControlFlowLimits, AnEndlessLoopIsAnErrorOfTheRun) {
  auto built = require(build(optionsFor("endless", "cpu")));
  test::TempDir folder;
  RunOptions options;
  options.file = folder / "endless.pte";
  ASSERT_TRUE(writeOutput(built, options.file).ok());
  require(runFile(options, {{"in0", Tensor::from({1, 4}, std::vector<float>(4, -0.5f))}}));
  const NamedTensors endless{{"in0", Tensor::from({1, 4}, std::vector<float>(4, 0.5f))}};
  const std::string error = errorOf(runFile(options, endless));
  EXPECT_THAT(error, HasSubstr("the limit for this execution is"));
  EXPECT_THAT(error, HasSubstr("these inputs may keep a condition true"));
  // Without that limit, the runtime's own limit applies.
  options.trusted = true;
  const std::string ofTurns = errorOf(runFile(options, endless));
  EXPECT_THAT(ofTurns, HasSubstr("does not come to an end"));
  EXPECT_THAT(ofTurns, HasSubstr("check the conditions of its loops"));
}

TEST(ControlFlowCalibration, ABranchThatNoSampleTakesIsCalibratedWithAWarning) {
  test::TempDir folder;
  Options options = optionsFor("cond_one_arg_and_scalar_one_output", "ethos-u85-256");
  const Tensor positive = Tensor::from({2, 1, 1, 2, 2}, std::vector<float>{1, 2, -1, 3, 0.5f, 1, 1, 2});
  options.calibration = folder / "positive.npz";
  ASSERT_TRUE(writeFile(options.calibration, formatNpz({{"calib0", positive}})).ok());
  auto built = require(build(options));
  const auto about = std::find_if(built.warnings.begin(), built.warnings.end(), [](const Diagnostic& w) {
    return w.message.find("no calibration sample reaches it") != std::string::npos;
  });
  ASSERT_NE(about, built.warnings.end());
  EXPECT_EQ(about->place, "cond");
  EXPECT_THAT(about->message, HasSubstr("false branch"));
}

}  // namespace
}  // namespace carina::pipeline
