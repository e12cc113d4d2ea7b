// SPDX-License-Identifier: Apache-2.0
// Small random networks of one operator each (tests/data/tflite), with the outputs of the reference kernels
// of TensorFlow Lite for Microcontrollers: every value must be the same, in the TOSA interpreter and on the
// NPU model.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/npy.hpp"
#include "lower_tfl/lower.hpp"
#include "partition/partition.hpp"
#include "pipeline/run.hpp"
#include "pipeline/verify.hpp"
#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"
#include "tflite/graph_builder.hpp"
#include "tosa/interpreter.hpp"

namespace carina {
namespace {

std::vector<std::filesystem::path> networks() {
  return test::filesIn(test::dataDir() / "tflite", ".tflite");
}

/// Runs the network in the TOSA interpreter. `loops`: whether the graph contains a loop.
void expectOutputsOfTheReferenceKernels(const std::filesystem::path& file, bool loops = false) {
  auto network = require(tflite::readNetwork(file));
  auto tosa = require(lower_tfl::lowerToTosa(network));
  EXPECT_EQ(partition::hasControlFlow(tosa.tosa), loops);
  auto data = require(readArrays(std::filesystem::path(file).replace_extension(".npz")));
  auto interpreted = require(tosa::interpret(tosa.tosa, test::arraysNamed(data, "in")));
  const std::vector<Tensor> outputs = tosa.networkOutputs(std::move(interpreted));
  const std::vector<Tensor> expected = test::arraysNamed(data, "out");
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(outputs[i].shape(), expected[i].shape());
    ASSERT_EQ(outputs[i].dtype(), expected[i].dtype());
    for (int64_t k = 0; k < expected[i].numElements(); ++k)
      ASSERT_EQ(outputs[i].integerAt(k), expected[i].integerAt(k)) << "output " << i << " element " << k;
  }
}

class TfliteGolden : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(TfliteGolden, MatchesTheReferenceKernels) {
  expectOutputsOfTheReferenceKernels(GetParam());
}

/// LSTMs over more steps than are unrolled: loops in the graph, and in the command stream if the NPU supports
/// branches.
TEST(TfliteLoops, MatchTheReferenceKernels) {
  const auto files = test::filesIn(test::dataDir() / "tflite_loops", ".tflite");
  EXPECT_EQ(files.size(), 3u);
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.string());
    expectOutputsOfTheReferenceKernels(file, true);
    const auto data = require(readArrays(std::filesystem::path(file).replace_extension(".npz")));
    pipeline::Options options;
    options.model = file;
    options.tflite = true;
    options.target = "ethos-u85-256";
    const auto build = require(pipeline::build(options));
    EXPECT_TRUE(build.partitioned.wholly);
    ASSERT_EQ(build.compiled.size(), 1u);
    EXPECT_LT(build.compiled[0].commands.size() * 4, 40'000u) << "commands of one chunk, not of all steps";
    const test::TempDir folder;
    pipeline::RunOptions run;
    run.file = folder / "out.tflite";
    ASSERT_TRUE(pipeline::writeOutput(build, run.file).ok());
    const auto ran = require(pipeline::runFile(run, {{"in0", *findTensor(data, "in0")}}));
    const ByteSpan expected = findTensor(data, "out0")->bytes(), found = ran.outputs[0].second.bytes();
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
    // Other NPUs leave it to the CPU, as a TensorFlow Lite operator.
    options.target = "ethos-u55-128";
    const auto other = require(pipeline::build(options));
    EXPECT_TRUE(other.compiled.empty());
  }
}

TEST_P(TfliteGolden, TheNpuAgrees) {
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    pipeline::Options options;
    options.model = GetParam();
    options.target = target;
    auto build = pipeline::build(options);
    ASSERT_TRUE(build.ok()) << target << ": " << build.error().str();
    EXPECT_TRUE(build->partitioned.wholly);
    const auto samples = require(pipeline::verificationSamples(*build, {}));
    const auto result = pipeline::verify(*build, samples);
    ASSERT_TRUE(result.ok()) << target << ": " << result.error().str();
    EXPECT_TRUE(result->ok()) << target;
  }
}

TEST_P(TfliteGolden, ACompiledModelRuns) {
  auto data = require(readArrays(std::filesystem::path(GetParam()).replace_extension(".npz")));
  NamedTensors inputs;
  for (const auto& [name, tensor] : data) {
    if (name.starts_with("in")) inputs.emplace_back(name, tensor);
  }
  pipeline::Options options;
  options.model = GetParam();
  options.target = "ethos-u55-128";
  const auto build = require(pipeline::build(options));
  const test::TempDir folder;
  const std::filesystem::path file = folder.path() / "compiled.tflite";
  require(pipeline::writeOutput(build, file));
  pipeline::RunOptions run;
  run.file = file;
  const auto result = require(pipeline::runFile(run, inputs));
  ASSERT_TRUE(result.program.has_value());
  const std::vector<Tensor> expected = test::arraysNamed(data, "out"),
                            outputs = test::arraysNamed(result.outputs, "out");
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(outputs[i], expected[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Files, TfliteGolden, testing::ValuesIn(networks()),
                         [](const auto& param) { return param.param.stem().string(); });

}  // namespace
}  // namespace carina
