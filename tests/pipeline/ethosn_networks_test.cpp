// SPDX-License-Identifier: Apache-2.0
// Well-known networks for the four variants of Ethos-N78: how many parts they become, how many kernels are
// left to the CPU, and the programs byte for byte. CARINA_UPDATE_GOLDENS=1 rewrites the golden files.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "ethosn/model/run.hpp"
#include "pipeline/ethosn_targets.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/tflite_shapes.hpp"
#include "pipeline/verify.hpp"
#include "support/fixtures.hpp"
#include "support/golden.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"
#include "tflite/file_builder.hpp"

namespace carina::pipeline {
namespace {

struct Network {
  const char* name;
  size_t parts, kernels;  // on the NPU, on the CPU
  bool large = false;     // for one variant only if the larger suites are absent
};
constexpr Network kNetworks[] = {{"mobilenet_v1", 1, 3},
                                 {"mobilenet_v2_shapes", 1, 3},
                                 {"resnet50", 1, 3, true},
                                 {"inception_v3", 1, 3, true},
                                 {"ssd_mobilenet_v1", 1, 0}};

/// FNV-1a, 64 bits.
template <typename Bytes>
uint64_t hashOf(const Bytes& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const auto byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

/// Hash of what the NPU computes from random codes, in a checked execution of the stream.
uint64_t resultsOf(const EthosNPart& part, const ethosn::Target& target) {
  std::mt19937 random(5);
  std::vector<std::vector<std::byte>> inputs;
  for (const ethosn::BufferInfo& info : part.compiled.inputs) {
    inputs.emplace_back(info.size);
    for (std::byte& byte : inputs.back()) byte = static_cast<std::byte>(random() >> 8);
  }
  const std::vector<ByteSpan> spans(inputs.begin(), inputs.end());
  const auto run = require(ethosn::runNetwork(part.compiled, spans, target));
  for (const ethosn::Finding& finding : run.findings) ADD_FAILURE() << finding.str();
  uint64_t hash = 0;
  for (const auto& output : run.outputs) hash ^= hashOf(output);
  return hash;
}

class EthosNKnownNetworks : public testing::TestWithParam<std::tuple<Network, const char*>> {};

TEST_P(EthosNKnownNetworks, BecomeOnePartWithTheSameBytes) {
  const auto& [network, target] = GetParam();
  if (network.large && target != test::kEthosNTargets[2] && !test::fixturesDir())
    GTEST_SKIP() << "set CARINA_FIXTURES to the folder of the larger suites";
  const test::TempDir dir;
  Options options;
  options.model = dir / (std::string(network.name) + ".tflite");
  options.target = target;
  const std::string file = tfliteNetwork(network.name);
  std::ofstream(options.model, std::ios::binary)
      .write(file.data(), static_cast<std::streamsize>(file.size()));
  const auto built = require(build(options));
  EXPECT_EQ(built.ethosNParts.size(), network.parts);
  size_t kernels = 0;
  for (const pte::Method& method : built.program.methods) kernels += method.operators.size();
  EXPECT_EQ(kernels, network.kernels);
  const auto program = require(pte::writeProgram(built.program));
  std::string said = fmt::format("program: {} bytes, {:016x}\n", program.size(), hashOf(program));
  for (const EthosNPart& part : built.ethosNParts) {
    said += fmt::format("part: {} operations, {} passes, constants {} bytes, results {:016x}\n",
                        part.operations.operations.size(), part.passes.size(),
                        part.compiled.constantDma.size(), resultsOf(part, *built.ethosN));
  }
  EXPECT_TRUE(test::matchesGolden(fmt::format("ethosn/{}.{}.txt", network.name, target), said));
}

// 64 x 600 x 600 weights would be too many for a vector product.
TEST(EthosNMeans, DeepFeatureMapsUseThePle) {
  for (const auto& [scale, zeroPoint] : {std::pair(0.5F, -3), std::pair(0.625F, 10)}) {
    test::TfliteFile file;
    file.plan = false;
    const std::vector<int32_t> axes = {1, 2};
    file.tensors = {{"x", tflite::TensorType::Int8, {1, 8, 8, 600}, ""},
                    {"axes", tflite::TensorType::Int32, {2}, {reinterpret_cast<const char*>(axes.data()), 8}},
                    {"y", tflite::TensorType::Int8, {1, 600}, "", -1, {scale}, {zeroPoint}}};
    file.tensors[1].scales.clear(), file.tensors[1].zeroPoints.clear();
    constexpr int32_t kMean = 40;
    file.operators = {{"", kMean, {0, 1}, {2}, test::optionsOf(tflite::fb::ReducerOptionsT{})}};
    file.inputs = {0};
    file.outputs = {2};
    const test::TempDir dir;
    Options options;
    options.model = dir / "mean.tflite";
    options.target = test::kEthosNTargets[2];
    const std::string bytes = file.bytes();
    std::ofstream(options.model, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const auto built = require(build(options));
    EXPECT_TRUE(built.partitioned.wholly);
    const auto samples = require(verificationSamples(built, {}));
    const auto verified = require(verify(built, samples));
    EXPECT_TRUE(verified.ok());
    EXPECT_LE(verified.offTosa.worst, 1);
  }
}

std::string nameOf(const testing::TestParamInfo<std::tuple<Network, const char*>>& test) {
  const auto& [network, target] = test.param;
  std::string name = fmt::format("{}_{}", network.name, std::string_view(target).substr(sizeof("ethos-n78")));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, EthosNKnownNetworks,
                         testing::Combine(testing::ValuesIn(kNetworks),
                                          testing::ValuesIn(test::kEthosNTargets)),
                         nameOf);

}  // namespace
}  // namespace carina::pipeline
