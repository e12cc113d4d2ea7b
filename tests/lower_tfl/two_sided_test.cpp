// SPDX-License-Identifier: Apache-2.0
// PRELU and LEAKY_RELU against the arithmetic of TensorFlow Lite's kernels, for every input code: slopes for
// which the larger or the smaller side is the result, and others.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "lower_tfl/fixed_point.hpp"
#include "pipeline/operators.hpp"
#include "pipeline/run.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"
#include "tflite/file_builder.hpp"

namespace carina {
namespace {

using tflite::TensorType;

constexpr int32_t kPrelu = 54, kLeakyRelu = 98;

struct Case {
  const char* name;
  float input, alpha, output;  // scales
  int64_t inputZero, alphaZero, outputZero;
  std::vector<int8_t> slopes;
};

const Case kCases[] = {
    {"gentle", 0.05F, 0.01F, 0.05F, 3, -128, 3, {-128, -100, -29, -40}},
    {"exactly_one", 0.05F, 0.0078125F, 0.04F, 3, -128, -7, {0, -1, -128, 0}},
    {"negative", 0.02F, 0.01F, 0.037F, -20, 0, 9, {-128, -1, 0, 99}},
    {"tiny_scales", 0.0001F, 0.01F, 0.9F, -128, 0, 1, {-128, 50, 0, 99}},
    {"steep", 0.02F, 0.1F, 0.08F, 11, 0, -100, {10, 11, 100, 127}},
    {"mixed", 0.02F, 0.02F, 0.03F, 40, 0, -60, {-30, 20, 50, 100}},
    {"saturating", 0.5F, 0.1F, 0.02F, 0, -10, 5, {-100, 0, 60, 127}},
};

/// The network's output codes for the codes of `input`.
Tensor ran(const test::TfliteFile& file, const std::string& target, const Tensor& input) {
  const test::TempDir folder;
  pipeline::Options options;
  options.model = folder.path() / "network.tflite";
  std::ofstream(options.model, std::ios::binary) << file.bytes();
  options.target = target;
  const pipeline::Build build = require(pipeline::build(options));
  pipeline::RunOptions run;
  run.file = folder.path() / "p.pte";
  require(pipeline::writeOutput(build, run.file));
  return require(pipeline::runFile(run, {{"in0", input}})).outputs.front().second;
}

int64_t saturated(int64_t code, DType type) {
  return std::clamp(code, integerMin(type), integerMax(type));
}

class TwoSided : public testing::TestWithParam<Case> {};

TEST_P(TwoSided, PreluOfEveryCode) {
  const Case& c = GetParam();
  const auto channels = static_cast<int32_t>(c.slopes.size());
  test::TfliteFile file;
  file.tensors = {{"x", TensorType::Int8, {1, 16, 16, channels}, "", -1, {c.input}, {c.inputZero}},
                  {"alpha",
                   TensorType::Int8,
                   {1, 1, channels},
                   std::string(c.slopes.begin(), c.slopes.end()),
                   -1,
                   {c.alpha},
                   {c.alphaZero}},
                  {"y", TensorType::Int8, {1, 16, 16, channels}, "", -1, {c.output}, {c.outputZero}}};
  file.operators = {{"", kPrelu, {0, 1}, {2}}};
  file.inputs = {0};
  file.outputs = {2};
  Tensor input = Tensor::uninitialized(DType::Int8, {1, 16, 16, channels});
  for (int64_t n = 0; n < input.numElements(); ++n) input.setIntegerAt(n, n / channels - 128);
  using lower_tfl::multiply;
  using lower_tfl::quantizeMultiplier;
  const double in = c.input, alpha = c.alpha, out = c.output;
  const auto positive = quantizeMultiplier(in / out), negative = quantizeMultiplier(in * alpha / out);
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    const Tensor result = ran(file, target, input);
    for (int64_t n = 0; n < input.numElements(); ++n) {
      const auto x = static_cast<int32_t>(input.integerAt(n) - c.inputZero);
      const auto slope = static_cast<int32_t>(c.slopes[static_cast<size_t>(n % channels)] - c.alphaZero);
      const int32_t y = x >= 0 ? multiply(x, positive) : multiply(x * slope, negative);
      ASSERT_EQ(result.integerAt(n), saturated(y + c.outputZero, DType::Int8))
          << target << " " << x << " " << slope;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, TwoSided, testing::ValuesIn(kCases),
                         [](const auto& tested) { return tested.param.name; });

TEST(LeakyRelu, OfEvery16BitCode) {
  for (const float alpha : {0.0F, 0.1F, 1.0F, 1.7F}) {
    constexpr float kIn = 0.003F, kOut = 0.002F;
    test::TfliteFile file;
    file.tensors = {{"x", TensorType::Int16, {1, 256, 256, 1}, "", -1, {kIn}, {0}},
                    {"y", TensorType::Int16, {1, 256, 256, 1}, "", -1, {kOut}, {0}}};
    tflite::fb::LeakyReluOptionsT options;
    options.alpha = alpha;
    file.operators = {{"", kLeakyRelu, {0}, {1}, test::optionsOf(options)}};
    file.inputs = {0};
    file.outputs = {1};
    Tensor input = Tensor::uninitialized(DType::Int16, {1, 256, 256, 1});
    for (int64_t n = 0; n < input.numElements(); ++n) input.setIntegerAt(n, n - 32768);
    const Tensor result = ran(file, "ethos-u55-128", input);
    const auto positive = lower_tfl::quantizeMultiplier(static_cast<double>(kIn / kOut)),
               negative = lower_tfl::quantizeMultiplier(static_cast<double>(kIn * alpha / kOut));
    for (int64_t n = 0; n < input.numElements(); ++n) {
      const auto x = static_cast<int32_t>(input.integerAt(n));
      ASSERT_EQ(result.integerAt(n),
                saturated(lower_tfl::multiply(x, x >= 0 ? positive : negative), DType::Int16))
          << alpha << " " << x;
    }
  }
}

}  // namespace
}  // namespace carina
