// SPDX-License-Identifier: Apache-2.0
// Networks compiled for an Ethos-N78 and run on its model, compared with the TOSA graph that they come from.
#include "pipeline/ethosn_build.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/npy.hpp"
#include "ethosn/model/run.hpp"
#include "pipeline/ethosn_targets.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "tosa/interpreter.hpp"

namespace carina::pipeline {
namespace {

Result<EthosNBuild> buildFor(const std::filesystem::path& model, const std::string& target) {
  Options options;
  options.model = model;
  options.target = target;
  options.calibration = std::filesystem::path(model).replace_extension(".npz");
  return buildEthosN(options);
}

/// Codes of every output, from the model of the NPU.
std::vector<std::vector<uint8_t>> runOnModel(const EthosNBuild& build, const std::vector<Tensor>& inputs) {
  std::vector<ByteSpan> spans;
  spans.reserve(inputs.size());
  for (const Tensor& input : inputs) spans.push_back(input.bytes());
  ethosn::RunResult run = require(ethosn::runNetwork(build.network, spans, build.target));
  for (const ethosn::Finding& finding : run.findings) ADD_FAILURE() << finding.str();
  return std::move(run.outputs);
}

Tensor randomCodes(const ir::Type& type, std::mt19937& random) {
  Tensor out = Tensor::zeros(type.dtype, type.shape);
  for (int64_t i = 0; i < out.numElements(); ++i)
    out.setIntegerAt(i, static_cast<int64_t>(random() % 256) - 128);
  return out;
}

/// The largest difference between codes of the NPU and of the TOSA graph. Multipliers have 16 bits instead of
/// 31: a result may be off by one per layer.
int furthestCodes(const EthosNBuild& build, int runs) {
  std::mt19937 random(3);
  int furthest = 0;
  for (int i = 0; i < runs; ++i) {
    std::vector<Tensor> inputs, graphInputs(build.inputs.size());
    for (size_t k = 0; k < build.inputs.size(); ++k) {
      inputs.push_back(randomCodes(build.inputs[k].type, random));
      graphInputs[build.graphInputs[k]] = inputs.back();
    }
    const auto expected = tosa::interpret(build.tosa, graphInputs);
    EXPECT_TRUE(expected.ok());
    const auto outputs = runOnModel(build, inputs);
    EXPECT_EQ(outputs.size(), build.outputs.size());
    if (!expected.ok() || outputs.size() != build.outputs.size()) return INT32_MAX;
    for (size_t k = 0; k < outputs.size(); ++k) {
      const Tensor& reference = (*expected)[build.graphOutputs[k]];
      for (int64_t e = 0; e < reference.numElements(); ++e) {
        const int ours = static_cast<int8_t>(outputs[k][static_cast<size_t>(e)]);
        furthest = std::max(furthest, std::abs(ours - static_cast<int>(reference.integerAt(e))));
      }
    }
  }
  return furthest;
}

/// Fraction of the samples whose largest output is that of their label.
double topOne(const EthosNBuild& build, const Tensor& images, const Tensor& labels) {
  const auto& quantization = *build.inputs[0].quantization;
  const int64_t count = images.dim(0), size = images.numElements() / count;
  int64_t right = 0;
  for (int64_t i = 0; i < count; ++i) {
    Tensor codes = Tensor::zeros(DType::Int8, build.inputs[0].type.shape);
    for (int64_t e = 0; e < size; ++e) {
      const double code = std::nearbyint(images.realAt(i * size + e) / quantization.scales[0]) +
                          static_cast<double>(quantization.zeroPoints[0]);
      codes.setIntegerAt(e, static_cast<int64_t>(std::clamp(code, -128.0, 127.0)));
    }
    const std::vector<uint8_t> output = runOnModel(build, {codes}).at(0);
    const auto* begin = reinterpret_cast<const int8_t*>(output.data());
    right += std::max_element(begin, begin + output.size()) - begin == labels.integerAt(i) ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(count);
}

void expectAccuracy(const std::filesystem::path& model, const std::filesystem::path& samples,
                    const char* images, double points, const char* target = test::kEthosNTargets[2]) {
  SCOPED_TRACE(target);
  const auto build = require(buildFor(model, target));
  auto arrays = require(readArrays(samples));
  const auto array = [&arrays](const std::string& name) {
    return std::find_if(arrays.begin(), arrays.end(), [&name](const auto& one) { return one.first == name; })
        ->second;
  };
  const double float32 = array("float_top1").realAt(0);
  const double unit = float32 > 1 ? 100 : 1;
  EXPECT_NEAR(topOne(build, array(images), array("labels")), float32 / unit, points / 100);
}

TEST(EthosNBuild, AccuracyIsCloseToTheFloatNetwork) {
  expectAccuracy(test::modelFile("digits8.pt2"), test::modelFile("digits8_eval.npz"), "in0", 1.5);
}

TEST(EthosNBuild, AccuracyOfDigitsCnn) {
  CARINA_NEED_FIXTURES(fixtures);
  const std::filesystem::path folder = fixtures / "fixtures/models";
  for (const char* target : test::kEthosNTargets)
    expectAccuracy(folder / "digits_cnn.pt2", folder / "digits_cnn.eval.npz", "images", 0.5, target);
}

TEST(EthosNBuild, NetworksRunOnTheModel) {
  for (const char* name : {"digits8", "residual", "mobile", "dense"}) {
    for (const char* target : test::kEthosNTargets) {
      SCOPED_TRACE(fmt::format("{} {}", name, target));
      const auto build = require(buildFor(test::modelFile(std::string(name) + ".pt2"), target));
      EXPECT_LE(furthestCodes(build, 4), 3);
    }
  }
}

TEST(EthosNBuild, LargerNetworks) {
  CARINA_NEED_FIXTURES(fixtures);
  for (const char* name : {"digits_cnn", "resnet8", "mobilenet_v2"}) {
    for (const char* target : test::kEthosNTargets) {
      SCOPED_TRACE(fmt::format("{} {}", name, target));
      const auto build =
          require(buildFor(fixtures / "fixtures/models" / (std::string(name) + ".pt2"), target));
      EXPECT_LE(furthestCodes(build, 1), 6);
    }
  }
}

TEST(EthosNBuild, RefusesWhatCannotRun) {
  EXPECT_NE(errorOf(buildFor(test::modelFile("dense.pt2"), "ethos-n78-2tops-2ple")).find("no PLE kernels"),
            std::string::npos);
  const auto retired = buildFor(test::modelFile("dense.pt2"), "ethos-n77");
  ASSERT_FALSE(retired.ok());
  EXPECT_NE(retired.error().str().find("retired"), std::string::npos);
  Options options;
  options.model = test::modelFile("dense.pt2");
  options.target = test::kEthosNTargets[0];
  options.quantization = Quantization::Int16x8;
  EXPECT_FALSE(buildEthosN(options).ok());
  EXPECT_FALSE(checkEthosNOutput("out.pte").ok());
}

}  // namespace
}  // namespace carina::pipeline
