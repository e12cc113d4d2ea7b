// SPDX-License-Identifier: Apache-2.0
// Networks that keep state from call to call (models/state_networks.py): the float executor, CPU programs and
// NPU programs compute what PyTorch computes over a sequence of calls.
#include "ir/state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "aten/executor.hpp"
#include "base/npy.hpp"
#include "pipeline/run.hpp"
#include "pipeline/verify.hpp"
#include "pt2/exported_program.hpp"
#include "pte/program.hpp"
#include "quantize/sqnr.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

std::filesystem::path stateFile(const std::string& name, const char* suffix) {
  return test::dataDir() / "state" / (name + suffix);
}

std::vector<std::string> networks() {
  std::vector<std::string> names;
  for (const auto& file : test::filesIn(test::dataDir() / "state", ".pt2"))
    names.push_back(file.stem().string());
  return names;
}

NamedTensors stateArrays(const std::string& name) {
  return require(readArrays(stateFile(name, ".npz")));
}

/// The arrays whose names begin with `prefix`.
NamedTensors starting(const NamedTensors& arrays, std::string_view prefix) {
  NamedTensors result;
  for (const auto& array : arrays) {
    if (array.first.starts_with(prefix)) result.push_back(array);
  }
  return result;
}

Options optionsOf(const std::string& name, const std::string& target, Quantization quantization) {
  Options options;
  options.model = stateFile(name, ".pt2");
  options.calibration = stateFile(name, ".npz");
  options.target = target;
  options.quantization = quantization;
  return options;
}

Result<RunResult> run(const Build& built, const NamedTensors& inputs, ResetState reset = ResetState::Never) {
  const test::TempDir folder;
  RunOptions options;
  options.file = folder / "program.pte";
  options.resetState = reset;
  CARINA_RETURN_IF_ERROR(writeOutput(built, options.file));
  return runFile(options, inputs);
}

/// SQNR of the results of all calls, against PyTorch.
double decibels(const RunResult& result, const NamedTensors& arrays, size_t output) {
  const Tensor* expected = findTensor(arrays, fmt::format("out{}", output));
  EXPECT_TRUE(expected && expected->shape() == result.outputs[output].second.shape());
  quantize::Sqnr sqnr;
  if (expected) sqnr.add(*expected, result.outputs[output].second);
  return sqnr.decibels();
}

class State : public testing::TestWithParam<std::string> {};

TEST_P(State, FloatExecutorMatchesTorch) {
  const NamedTensors arrays = stateArrays(GetParam());
  pt2::ReadOptions reading;
  reading.state = pt2::StatePolicy::Expose;
  auto program = require(pt2::readExportedProgram(stateFile(GetParam(), ".pt2"), reading));
  ASSERT_FALSE(program.exposedBuffers.empty());
  std::vector<Tensor> initial;
  for (const pt2::ExposedBuffer& buffer : program.exposedBuffers) initial.push_back(buffer.initial);
  ir::StateHolder state(std::move(initial));
  auto executor = require(aten::Executor::create(program.graph));
  const size_t inputs = program.graph.inputs().size() - program.exposedBuffers.size();
  const auto calls = findTensor(arrays, "in0")->dim(0);
  for (int64_t n = 0; n < calls; ++n) {
    std::vector<Tensor> given;
    for (size_t i = 0; i < inputs; ++i)
      given.push_back(slice(*findTensor(arrays, fmt::format("in{}", i)), n));
    auto all = require(executor.run(state.inputs(given)));
    const std::vector<Tensor> results = state.outputs(std::move(all));
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor expected = slice(*findTensor(arrays, fmt::format("out{}", i)), n);
      for (int64_t k = 0; k < expected.numElements(); ++k)
        ASSERT_NEAR(results[i].realAt(k), expected.realAt(k), 1e-5) << "call " << n << ", output " << i;
    }
  }
}

TEST_P(State, CpuProgramMatchesTorch) {
  const NamedTensors arrays = stateArrays(GetParam());
  Options options = optionsOf(GetParam(), "cpu", Quantization::None);
  options.calibration.clear();
  const auto built = require(build(options));
  const auto result = require(run(built, starting(arrays, "in")));
  for (size_t i = 0; i < result.outputs.size(); ++i) EXPECT_GT(decibels(result, arrays, i), 100) << i;
}

TEST_P(State, NpuProgramsAreExactOverManyCalls) {
  const NamedTensors arrays = stateArrays(GetParam());
  struct Case {
    const char* target;
    Quantization quantization;
    double least;  // decibels
  };
  for (const Case& one : {Case{"ethos-u85-256", Quantization::Int8, 20},
                          {"ethos-u85-256", Quantization::Int16x8, 30},
                          {"ethos-u55-128", Quantization::Int8, 20}}) {
    SCOPED_TRACE(one.target);
    const auto built = require(build(optionsOf(GetParam(), one.target, one.quantization)));
    EXPECT_FALSE(built.compiled.empty());
    auto samples = require(verificationSamples(built, starting(arrays, "in")));
    const auto verified = require(verify(built, samples));
    EXPECT_TRUE(verified.ok());
    EXPECT_EQ(verified.samples, samples.size());
    const auto result = require(run(built, starting(arrays, "in")));
    for (size_t i = 0; i < result.outputs.size(); ++i) EXPECT_GT(decibels(result, arrays, i), one.least) << i;
  }
}

/// Each variable is in the state pool with its initial contents, and is neither an input nor an output.
TEST_P(State, IsInItsOwnPool) {
  const auto built = require(build(optionsOf(GetParam(), "ethos-u85-256", Quantization::Int8)));
  auto bytes = require(pte::writeProgram(built.program));
  const auto program = require(pte::readProgram(asBytes(bytes)));
  const pte::Method& method = program.methods[0];
  EXPECT_EQ(method.inputs.size(), ir::callerInputs(built.graph(), built.state));
  EXPECT_EQ(method.outputs.size(), ir::callerOutputs(built.graph(), built.state));
  std::vector<std::string> names;
  for (const pte::Value& value : method.values) {
    const auto* tensor = std::get_if<pte::Tensor>(&value);
    if (!tensor || !tensor->allocation || tensor->allocation->memoryId != pte::StatePool::kMemoryId) continue;
    if (!tensor->extra) continue;  // a view of one
    names.push_back(tensor->extra->name);
    ASSERT_LT(tensor->dataIndex, program.mutableData.size());
    EXPECT_GE(static_cast<int64_t>(program.mutableData[tensor->dataIndex].size()),
              *pte::tensorBytes(*tensor));
  }
  std::vector<std::string> expected;
  for (const ir::StateVariable& variable : built.state) expected.push_back(variable.name);
  EXPECT_EQ(names, expected);
}

TEST_P(State, IsResetBeforeEachSampleOnRequest) {
  Options options = optionsOf(GetParam(), "cpu", Quantization::None);
  options.calibration.clear();
  const auto built = require(build(options));
  NamedTensors same;  // two calls with the inputs of the first
  for (const auto& [name, tensor] : starting(stateArrays(GetParam()), "in")) {
    const std::vector<Tensor> twice(2, slice(tensor, 0));
    same.emplace_back(name, stack(twice));
  }
  const auto differences = [&](ResetState reset) {
    const auto result = require(run(built, same, reset));
    int64_t count = 0;
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      const Tensor first = slice(result.outputs[i].second, 0), second = slice(result.outputs[i].second, 1);
      for (int64_t k = 0; k < first.numElements(); ++k) count += first.realAt(k) != second.realAt(k);
    }
    return count;
  };
  EXPECT_EQ(differences(ResetState::Each), 0);
  // Writing the same keys at the same place again changes nothing.
  const bool repeats = GetParam() == "attention_index_put" || GetParam() == "attention_index_copy";
  if (!repeats) {
    EXPECT_GT(differences(ResetState::Never), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, State, testing::ValuesIn(networks()),
                         [](const auto& test) { return test.param; });

TEST(StateOutput, CannotBeStoredInATflite) {
  const auto built = require(build(optionsOf("recurrent", "ethos-u85-256", Quantization::Int8)));
  const test::TempDir folder;
  const std::string error = errorOf(writeOutput(built, folder / "program.tflite"));
  EXPECT_NE(error.find("keeps state ('hidden')"), std::string::npos) << error;
}

}  // namespace
}  // namespace carina::pipeline
