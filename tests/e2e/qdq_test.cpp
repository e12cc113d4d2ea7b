// SPDX-License-Identifier: Apache-2.0
// Prequantized networks, in the forms of ExecuTorch's Arm quantizer (models/qdq_forms.py): wholly on the NPU,
// with PyTorch's results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "aten/control_flow.hpp"
#include "aten/ops.hpp"
#include "base/npy.hpp"
#include "pipeline/run.hpp"
#include "pipeline/verify.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"
#include "tosa/ops.hpp"

namespace carina::pipeline {
namespace {

std::vector<std::string> forms() {
  std::vector<std::string> names;
  for (const auto& file : test::filesIn(test::dataDir() / "qdq", ".pt2"))
    names.push_back(file.stem().string());
  return names;
}

class QuantizedForms : public testing::TestWithParam<std::string> {
 protected:
  static std::filesystem::path file(std::string_view suffix) {
    return test::dataDir() / "qdq" / (GetParam() + std::string(suffix));
  }

  static bool hasLoops(const Build& built) {
    bool loops = false;
    for (const ir::Node* node : built.graph().nodes()) loops = loops || node->is(aten::scanDef());
    return loops;
  }

  static void compare(const Tensor& actual, const Tensor& expected, double quantum) {
    ASSERT_EQ(actual.shape(), expected.shape());
    ASSERT_GT(quantum, 0);
    int64_t beyond = 0, worst = 0;
    for (int64_t i = 0; i < expected.numElements(); ++i) {
      const auto codes =
          static_cast<int64_t>(std::nearbyint(std::abs(actual.realAt(i) - expected.realAt(i)) / quantum));
      beyond += codes > 1 ? 1 : 0;
      worst = std::max(worst, codes);
    }
    EXPECT_LE(1000 * beyond, expected.numElements());
    EXPECT_LE(worst, 2);
  }

  static void run(const Build& built, const NamedTensors& arrays) {
    NamedTensors inputs;
    for (const auto& [name, tensor] : arrays) {
      if (name.starts_with("in")) inputs.emplace_back(name, tensor);
    }
    const test::TempDir folder;
    ASSERT_TRUE(writeOutput(built, folder / "program.pte").ok());
    RunOptions options;
    options.file = folder / "program.pte";
    const auto result = require(runFile(options, inputs));
    for (size_t o = 0; o < result.outputs.size(); ++o) {
      const auto made = ir::producerAs<aten::DequantizePerTensor>(built.graph().outputs()[o]);
      ASSERT_TRUE(made);
      const Tensor* expected = findTensor(arrays, fmt::format("out{}", o));
      ASSERT_TRUE(expected);
      compare(result.outputs[o].second, *expected, made.scale());
    }
  }
};

TEST_P(QuantizedForms, RunWhollyOnTheNpuWithPyTorchsResults) {
  const auto arrays = require(readNpz(file(".npz")));
  // With and without samples to observe the inner values.
  for (const auto& [target, calibrated] : {std::pair("ethos-u85-256", true), {"ethos-u55-128", false}}) {
    SCOPED_TRACE(target);
    Options options;
    options.model = file(".pt2");
    options.target = target;
    if (calibrated) options.calibration = file(".npz");
    options.unroll = 99;  // keeps loops, whatever they cost
    const auto built = require(build(options));
    // The program loops around the parts of an Ethos-U55; an Ethos-U85 loops by itself.
    EXPECT_TRUE(built.partitioned.wholly || (target == std::string_view("ethos-u55-128") && hasLoops(built)));
    run(built, arrays);
  }
}

TEST_P(QuantizedForms, AreEqualOnNpuAndTosa) {
  const auto arrays = require(readNpz(file(".npz")));
  Options options;
  options.model = file(".pt2");
  options.target = "ethos-u65-256";
  options.unroll = 99;
  const auto built = require(build(options));
  auto samples = require(verificationSamples(built, arrays));
  samples.resize(1);
  const auto result = require(verify(built, samples));
  EXPECT_TRUE(result.ok());
}

TEST(QuantizedFormsOnTheCpu, AnOperatorThatIsKeptThereComputesInFloat) {
  Options options;
  options.model = test::dataDir() / "qdq" / "lstm.pt2";
  options.target = "ethos-u85-256";
  options.cpuOps = {"lstm"};
  const auto built = require(build(options));
  EXPECT_FALSE(built.partitioned.wholly);
  for (const ir::Node* node : built.graph().nodes()) {
    const auto q = ir::dynCast<aten::QuantizePerTensor>(node);
    EXPECT_FALSE(q && q.dtype() == DType::Int16 && !ir::producerAs<aten::DequantizePerTensor>(q.input()))
        << node->where();
  }
}

TEST(QuantizedFormsInside, Int8CodesAreOneDigitOfWideProducts) {
  Options options;
  options.model = test::dataDir() / "qdq" / "sdpa.pt2";
  options.target = "ethos-u85-256";
  const auto built = require(build(options));
  ASSERT_EQ(built.partitioned.delegates.size(), 1u);
  int products = 0;
  for (const ir::Node* node : built.partitioned.delegates[0].tosa.nodes())
    products += ir::isa<tosa::Matmul>(node) ? 1 : 0;
  // Queries with keys, and four digits of the probabilities with the values.
  EXPECT_EQ(products, 1 + 4);
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedForms, testing::ValuesIn(forms()),
                         [](const auto& test) { return test.param; });

TEST(QuantizedFormsList, IsComplete) {
  EXPECT_GE(forms().size(), 56u);
}

}  // namespace
}  // namespace carina::pipeline
