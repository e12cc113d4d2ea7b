// SPDX-License-Identifier: Apache-2.0
// TensorFlow Lite operators that stay on the CPU (tests/data/tflite_cpu), with the outputs of its reference
// kernels: every value must be the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "device/tflite_runner.hpp"
#include "lower_tfl/fixed_point.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "tflite/file_builder.hpp"
#include "tflite/schema.hpp"

namespace carina {
namespace {

using device::TfliteRunner;
using testing::HasSubstr;

std::vector<std::filesystem::path> networks() {
  return test::filesIn(test::dataDir() / "tflite_cpu", ".tflite");
}

class TfliteCpuOperators : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(TfliteCpuOperators, MatchTheReferenceKernels) {
  const auto file = require(MappedFile::open(GetParam()));
  const auto data = require(readArrays(std::filesystem::path(GetParam()).replace_extension(".npz")));
  auto runner = require(TfliteRunner::open(file->bytes()));
  const auto outcome = require(runner.run(std::vector<Tensor>{*findTensor(data, "in0")}));
  const Tensor* const expected = findTensor(data, "out0");
  ASSERT_NE(expected, nullptr);
  ASSERT_EQ(outcome.outputs.size(), 1u);
  EXPECT_EQ(outcome.outputs[0], *expected);
}

INSTANTIATE_TEST_SUITE_P(Files, TfliteCpuOperators, testing::ValuesIn(networks()),
                         [](const auto& param) { return param.param.stem().string(); });

/// A network of the collection with the contents of one constant changed.
std::string withConstant(const std::string& name, size_t input, const std::vector<uint8_t>& contents) {
  const auto file = require(MappedFile::open(test::dataDir() / "tflite_cpu" / (name + ".tflite")));
  const std::unique_ptr<tflite::fb::RootT> root(tflite::fb::GetRoot(file->bytes().data())->UnPack());
  const auto& graph = *root->subgraphs[0];
  auto& data =
      root->buffers[graph.tensors[static_cast<size_t>(graph.operators[0]->inputs[input])]->buffer]->data;
  std::copy(contents.begin(), contents.end(), data.begin());
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(tflite::fb::Root::Pack(builder, root.get()), "TFL3");
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

std::string problemOf(const std::string& bytes) {
  auto runner = require(TfliteRunner::open(asBytes(bytes)));
  const device::Runner::Io io = runner.inputs()[0];
  return errorOf(runner.run(std::vector<Tensor>{Tensor::zeros(io.dtype, io.shape)}));
}

TEST(TfliteCpuOperatorsErrors, DivisionByZero) {
  EXPECT_EQ(problemOf(withConstant("div32_3", 1, {1})), "");
  EXPECT_THAT(problemOf(withConstant("div32_3", 1, {0, 0, 0, 0})), HasSubstr("is divided by 0"));
}

TEST(TfliteCpuOperatorsErrors, IndicesBeyondTheResult) {
  EXPECT_THAT(problemOf(withConstant("scatter_3", 0, {255, 255, 0, 0})), HasSubstr("index 65535 of axis 0"));
  EXPECT_THAT(problemOf(withConstant("scatter_3", 0, {255, 255, 255, 255})), HasSubstr("index -1 of axis 0"));
}

/// Rows of (code - zero point) with ratios of 3 : 4 and 0 : 1, and one of zeros, scaled to length 1 in units
/// of 1/128.
TEST(TfliteCpuOperators, L2Normalization) {
  constexpr int32_t kL2Normalization = 11;
  test::TfliteFile file;
  file.tensors = {{"x", tflite::TensorType::Int8, {3, 2}, "", -1, {0.1F}, {-5}},
                  {"y", tflite::TensorType::Int8, {3, 2}, "", -1, {1.0F / 128}, {0}}};
  file.operators = {{"", kL2Normalization, {0}, {1}}};
  file.inputs = {0};
  file.outputs = {1};
  file.plan = false;
  const std::string bytes = file.bytes();
  auto runner = require(TfliteRunner::open(asBytes(bytes)));
  const Tensor input = Tensor::from({3, 2}, std::vector<int8_t>{25, 35, -5, -5, -5, 7});
  const auto outcome = require(runner.run(std::vector<Tensor>{input}));
  EXPECT_EQ(outcome.outputs[0], Tensor::from({3, 2}, std::vector<int8_t>{77, 102, 0, 0, 0, 127}));
}

/// From 12 to 5 integer bits: within the last bits of the real logarithm.
TEST(TfliteFixedPoint, Logarithms) {
  for (int32_t a = 1 << 19; a > 0; a = a < INT32_MAX - a / 7 ? a + a / 7 : -1)
    EXPECT_NEAR(std::ldexp(lower_tfl::logOf(a), -26), std::log(std::ldexp(a, -19)), 2e-7) << a;
}

}  // namespace
}  // namespace carina
