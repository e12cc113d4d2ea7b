// SPDX-License-Identifier: Apache-2.0
// The larger collection: five real networks over all their calibration samples, held-out digits, and the
// graphs that ExecuTorch's quantizer produced. Needs CARINA_FIXTURES.
#include "support/fixtures.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/npy.hpp"
#include "pipeline/run.hpp"
#include "pipeline/verify.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

Options optionsFor(const std::filesystem::path& fixtures, const std::string& network,
                   const std::string& target) {
  Options options;
  options.model = fixtures / "fixtures" / "models" / (network + ".pt2");
  options.calibration = fixtures / "fixtures" / "models" / (network + ".npz");
  options.target = target;
  return options;
}

class FixtureNetworks : public testing::TestWithParam<const char*> {};

TEST_P(FixtureNetworks, IntegerResultsFollowTheSimulation) {
  CARINA_NEED_FIXTURES(fixtures);
  auto built = require(build(optionsFor(fixtures, GetParam(), "ethos-u85-256")));
  EXPECT_TRUE(built.partitioned.wholly);
  auto arrays = require(readNpz(built.options.calibration));
  auto samples = require(verificationSamples(built, arrays));
  auto result = require(verify(built, samples));
  EXPECT_TRUE(result.ok());
  for (const OutputResult& output : result.outputs) {
    EXPECT_LE(static_cast<double>(output.beyondOneLsb), 0.001 * static_cast<double>(output.elements))
        << output.name;
    RecordProperty("sqnr_db", fmt::format("{:.1f}", output.program.decibels()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, FixtureNetworks,
                         testing::Values("digits_cnn", "keyword_ds_cnn", "resnet8", "autoencoder",
                                         "mobilenet_v2"));

TEST(FixtureDigits, TopOneIsWithinThreeTenthsOfFloat) {
  CARINA_NEED_FIXTURES(fixtures);
  auto built = require(build(optionsFor(fixtures, "digits_cnn", "ethos-u55-128")));
  const test::TempDir folder;
  ASSERT_TRUE(writeOutput(built, folder / "digits.pte").ok());
  auto arrays = require(readNpz(fixtures / "fixtures" / "models" / "digits_cnn.eval.npz"));
  const NamedTensors input{{"in0", *findTensor(arrays, "images")}, {"labels", *findTensor(arrays, "labels")}};
  RunOptions run;
  run.file = folder / "digits.pte";
  auto result = require(runFile(run, input));
  const double top1 = static_cast<double>(*result.correct) / static_cast<double>(result.samples);
  EXPECT_GE(top1, findTensor(arrays, "float_top1")->realAt(0) - 0.003);
}

/// A trained network and the accuracy on held-out samples that it may lose against the float network, in
/// percentage points.
struct Trained {
  const char* name;
  Quantization quantization;
  double points;
};

class TrainedNetworks : public testing::TestWithParam<Trained> {};

TEST_P(TrainedNetworks, KeepTheirTopOne) {
  CARINA_NEED_FIXTURES(fixtures);
  const std::filesystem::path folder = fixtures / "fixtures" / "trained";
  const std::string name = GetParam().name;
  const auto held = require(readNpz(folder / (name + "_eval.npz")));
  const auto real = require(readNpz(folder / (name + "_float.npz")));
  const Tensor& labels = *findTensor(held, "labels");
  const Tensor& logits = *findTensor(real, "out0");
  const int64_t samples = labels.numElements(), classes = logits.numElements() / samples;
  int64_t right = 0;
  for (int64_t i = 0; i < samples; ++i) {
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c) {
      if (logits.realAt(i * classes + c) > logits.realAt(i * classes + best)) best = c;
    }
    right += best == labels.integerAt(i);
  }
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    Options options;
    options.model = folder / (name + ".pt2");
    options.calibration = folder / (name + ".npz");
    options.target = target;
    options.quantization = GetParam().quantization;
    auto built = require(build(options));
    EXPECT_TRUE(built.partitioned.wholly) << target;
    const test::TempDir temporary;
    ASSERT_TRUE(writeOutput(built, temporary / "program.pte").ok());
    RunOptions run;
    run.file = temporary / "program.pte";
    const auto result = require(runFile(run, held));
    ASSERT_EQ(static_cast<int64_t>(result.samples), samples);
    const double lost = 100 * static_cast<double>(right - static_cast<int64_t>(*result.correct)) /
                        static_cast<double>(samples);
    EXPECT_LE(lost, GetParam().points)
        << target << ": " << *result.correct << " of " << samples << ", float " << right;
    RecordProperty(target, fmt::format("{} of {}, float {}", *result.correct, samples, right));
  }
}

INSTANTIATE_TEST_SUITE_P(All, TrainedNetworks,
                         testing::Values(Trained{"tr_digits", Quantization::Int8, 0.3},
                                         Trained{"tr_digits", Quantization::Int16x8, 0.2},
                                         Trained{"lstm_digits", Quantization::Int8, 0.3},
                                         Trained{"lstm_digits", Quantization::Int16x8, 0.2},
                                         Trained{"convtr_signals", Quantization::Int8, 0.3},
                                         Trained{"convtr_signals", Quantization::Int16x8, 0.2}),
                         [](const auto& test) {
                           const bool wide = test.param.quantization == Quantization::Int16x8;
                           return std::string(test.param.name) + (wide ? "_16x8" : "_int8");
                         });

/// The scale of the dequantize that produces a program's output.
double quantumOf(const Build& build) {
  for (const pte::Instruction& instruction : build.program.methods[0].chains[0].instructions) {
    const auto* call = std::get_if<pte::KernelCall>(&instruction);
    if (!call || build.program.methods[0].operators[static_cast<size_t>(call->op)].name.find("dequantize") ==
                     std::string::npos)
      continue;
    return std::get<double>(build.program.methods[0].values[static_cast<size_t>(call->arguments[1])]);
  }
  return 1.0;
}

class ExecuTorchGraphs : public testing::TestWithParam<const char*> {};

TEST_P(ExecuTorchGraphs, KeepTheirParameters) {
  CARINA_NEED_FIXTURES(fixtures);
  const std::filesystem::path folder = fixtures / "vectors" / "executorch" / GetParam();
  size_t graphs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string variant = entry.path().filename().string();
    Options options;
    options.model = entry.path() / "qdq.pt2";
    options.target = variant.substr(0, variant.find('_'));  // then _a16w8, _a8w4, _int8io, _int8pt
    auto built = build(options);
    ASSERT_TRUE(built.ok()) << variant << ": " << built.error().str();
    auto io = require(readNpz(entry.path() / "io.npz"));
    NamedTensors inputs;
    for (size_t i = 0; const Tensor* input = findTensor(io, fmt::format("input{}", i)); ++i) {
      inputs.emplace_back(fmt::format("in{}", i), *input);
    }
    const test::TempDir temporary;
    ASSERT_TRUE(writeOutput(*built, temporary / "program.pte").ok());
    RunOptions run;
    run.file = temporary / "program.pte";
    auto result = runFile(run, inputs);
    ASSERT_TRUE(result.ok()) << variant << ": " << result.error().str();
    const Tensor& expected = *findTensor(io, "output0");
    const Tensor& actual = result->outputs[0].second;
    ASSERT_EQ(actual.shape(), expected.shape());
    const double quantum = quantumOf(*built);
    for (int64_t i = 0; i < expected.numElements(); ++i) {
      ASSERT_LE(std::abs(actual.realAt(i) - expected.realAt(i)), 1.001 * quantum)
          << variant << " element " << i;
    }
    ++graphs;
  }
  EXPECT_GT(graphs, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, ExecuTorchGraphs,
                         testing::Values("add", "add_small", "cat", "cnn", "conv", "dwconv", "linear", "lstm",
                                         "maxpool", "mean", "sigmoid", "softmax", "transformer"));

}  // namespace
}  // namespace carina::pipeline
