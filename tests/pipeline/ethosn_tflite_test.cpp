// SPDX-License-Identifier: Apache-2.0
// Networks of TensorFlow Lite for the four variants of Ethos-N78: one operator each, of int8 and uint8.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/npy.hpp"
#include "device/run.hpp"
#include "pipeline/ethosn_targets.hpp"
#include "pipeline/verify.hpp"
#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::pipeline {
namespace {

/// For products of two feature maps, whose intermediate results have few bits.
constexpr int64_t kMaxCodes = 3;
/// For probabilities after float layers that take codes.
constexpr double kMaxReal = 0.02;

Result<Build> builtFor(const std::filesystem::path& model, const char* target) {
  Options options;
  options.model = model;
  options.target = target;
  return build(options);
}

/// Compares every operation with TOSA, whose results are those of TensorFlow Lite
/// (tests/lower_tfl/golden_test.cpp).
void expectVerified(const Build& built) {
  const auto samples = require(verificationSamples(built, {}));
  const auto verified = require(verify(built, samples));
  for (const LayerResult& layer : verified.layers) {
    EXPECT_EQ(layer.mismatches, 0) << layer.value << " " << layer.op << ": " << layer.actual << " instead of "
                                   << layer.expected;
  }
  EXPECT_LE(verified.offTosa.worst, kMaxCodes);
  for (const std::string& finding : verified.findings) ADD_FAILURE() << finding;
}

/// Compares with the recorded results of the reference kernels.
void expectRecordedResults(const Build& built, const std::filesystem::path& file, int64_t most) {
  const auto arrays = require(readArrays(std::filesystem::path(file).replace_extension(".npz")));
  const auto bytes = require(pte::writeProgram(built.program));
  auto runner = require(device::Runner::open(asBytes(bytes)));
  const auto ran = require(runner.run(test::arraysNamed(arrays, "in")));
  for (size_t i = 0; i < ran.outputs.size(); ++i) {
    const Tensor* expected = findTensor(arrays, fmt::format("out{}", i));
    ASSERT_NE(expected, nullptr);
    ASSERT_EQ(ran.outputs[i].dtype(), expected->dtype());
    ASSERT_EQ(ran.outputs[i].shape(), expected->shape());
    if (isFloat(expected->dtype())) {
      for (int64_t k = 0; k < expected->numElements(); ++k)
        ASSERT_NEAR(ran.outputs[i].realAt(k), expected->realAt(k), kMaxReal) << "element " << k;
      continue;
    }
    for (int64_t k = 0; k < expected->numElements(); ++k)
      ASSERT_NEAR(ran.outputs[i].integerAt(k), expected->integerAt(k), most) << "element " << k;
  }
}

class EthosNTflite : public testing::TestWithParam<const char*> {};

TEST_P(EthosNTflite, NetworksOfOneOperatorRunWhollyOnTheNpu) {
  const auto files = test::filesIn(test::dataDir() / "ethosn/tflite", ".tflite");
  ASSERT_GE(files.size(), 60U);
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.stem().string());
    const auto built = require(builtFor(file, GetParam()));
    EXPECT_TRUE(built.partitioned.wholly);
    EXPECT_EQ(built.ethosNParts.size(), 1U);
    expectVerified(built);
  }
}

// Sizes and strides drawn for Ethos-U: networks that this NPU accepts come near the reference kernels; the
// others report why not.
TEST_P(EthosNTflite, OthersRunOrReportWhyNot) {
  size_t whole = 0, refused = 0;
  for (const std::filesystem::path& file : test::filesIn(test::dataDir() / "tflite", ".tflite")) {
    SCOPED_TRACE(file.stem().string());
    const auto built = builtFor(file, GetParam());
    if (built.ok()) {
      whole += built->partitioned.wholly ? 1 : 0;
      expectVerified(*built);
      expectRecordedResults(*built, file, kMaxCodes);
      continue;
    }
    ++refused;
    for (const Diagnostic& problem : built.error().diagnostics()) {
      EXPECT_NE(problem.code, Code::None) << problem.str();
      EXPECT_FALSE(problem.place.empty()) << problem.str();
    }
  }
  EXPECT_GE(whole, 55U);
  EXPECT_GT(refused, 0U);
}

// CPU kernels around NPU parts, in float as in programs of .pt2 networks.
TEST_P(EthosNTflite, NetworksAreSharedWithTheCpu) {
  const std::filesystem::path folder = test::dataDir() / "tflite_mixed";
  const std::pair<const char*, size_t> networks[] = {
      {"float_island", 2}, {"float_layers", 1}, {"input_again", 2}, {"two_tensors", 2}};
  for (const auto& [name, parts] : networks) {
    SCOPED_TRACE(name);
    const auto built = require(builtFor(folder / (std::string(name) + ".tflite"), GetParam()));
    EXPECT_EQ(built.ethosNParts.size(), parts);
    EXPECT_FALSE(built.partitioned.wholly);
    expectVerified(built);
    constexpr int64_t kMaxOfLayers = 6;
    expectRecordedResults(built, folder / (std::string(name) + ".tflite"), kMaxOfLayers);
  }
  for (const char* name : {"softmax8_3", "u8softmax_4", "maxi_3"}) {
    SCOPED_TRACE(name);
    const std::filesystem::path file = test::dataDir() / "tflite" / (std::string(name) + ".tflite");
    const auto built = require(builtFor(file, GetParam()));
    expectRecordedResults(built, file, 1);
  }
  const std::string refused = errorOf(builtFor(folder / "svdf.tflite", GetParam()));
  EXPECT_NE(refused.find("SVDF is left to the CPU"), std::string::npos);
  EXPECT_NE(refused.find("for an Ethos-N cannot hold it"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Variants, EthosNTflite, testing::ValuesIn(test::kEthosNTargets),
                         [](const auto& param) {
                           std::string name = std::string(param.param).substr(sizeof("ethos-n78-") - 1);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace carina::pipeline
