// SPDX-License-Identifier: Apache-2.0
// Networks whose inputs and outputs are float: the program converts them, unless --io omits the conversion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "pipeline/operators.hpp"
#include "pipeline/run.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"
#include "tflite/file_builder.hpp"

namespace carina {
namespace {

using tflite::TensorType;

constexpr int32_t kAdd = 0, kConv2d = 3, kDequantize = 6, kQuantize = 114, kRelu = 19;

/// y = x + x on int8 codes of scale 0.5, between float tensors.
std::filesystem::path floatNetwork(const test::TempDir& folder) {
  test::TfliteFile file;
  file.tensors = {{"x", TensorType::Float32, {1, 4}, "", -1, {}, {}},
                  {"codes", TensorType::Int8, {1, 4}, "", -1, {0.5F}, {0}},
                  {"sum", TensorType::Int8, {1, 4}, "", -1, {1.0F}, {0}},
                  {"y", TensorType::Float32, {1, 4}, "", -1, {}, {}}};
  file.operators = {{"", kQuantize, {0}, {1}},
                    {"", kAdd, {1, 1}, {2}, test::optionsOf(tflite::fb::AddOptionsT())},
                    {"", kDequantize, {2}, {3}}};
  file.inputs = {0};
  file.outputs = {3};
  std::filesystem::path path = folder.path() / "network.tflite";
  std::ofstream(path, std::ios::binary) << file.bytes();
  return path;
}

Result<NamedTensors> ran(const std::filesystem::path& model, pipeline::ProgramIo io, const Tensor& input,
                         const std::filesystem::path& program) {
  pipeline::Options options;
  options.model = model;
  options.target = "ethos-u55-128";
  options.inputs = options.outputs = io;
  options.tflite = program.extension() == ".tflite";
  CARINA_TRY(const pipeline::Build build, pipeline::build(options));
  CARINA_RETURN_IF_ERROR(pipeline::writeOutput(build, program));
  pipeline::RunOptions run;
  run.file = program;
  CARINA_TRY(const pipeline::RunResult result, pipeline::runFile(run, {{"in0", input}}));
  return result.outputs;
}

TEST(TfliteEdges, FloatInputsAreQuantizedByTheProgram) {
  const test::TempDir folder;
  const auto model = floatNetwork(folder);
  const auto result = require(ran(model, pipeline::ProgramIo::Float,
                                  Tensor::from<float>({1, 4}, std::vector<float>{0, 1, -3.5F, 100}),
                                  folder.path() / "p.pte"));
  const Tensor expected = Tensor::from<float>({1, 4}, std::vector<float>{0, 2, -7, 127});
  EXPECT_EQ(result.front().second, expected);
}

TEST(TfliteEdges, IntegerInputsAndOutputsAreNotConverted) {
  const test::TempDir folder;
  const auto model = floatNetwork(folder);
  const Tensor input = Tensor::from<int8_t>({1, 4}, std::vector<int8_t>{0, 2, -7, 127});
  for (const char* name : {"p.pte", "p.tflite"}) {
    const auto result = require(ran(model, pipeline::ProgramIo::Int8, input, folder.path() / name));
    EXPECT_EQ(result.front().second, Tensor::from<int8_t>({1, 4}, std::vector<int8_t>{0, 2, -7, 127}));
  }
}

TEST(TfliteEdges, ConversionsStayOperatorsInATflite) {
  const test::TempDir folder;
  const auto model = floatNetwork(folder);
  const Tensor input = Tensor::from<float>({1, 4}, std::vector<float>{0, 1, -3.5F, 63.5F});
  const auto program = require(ran(model, pipeline::ProgramIo::Float, input, folder.path() / "p.pte"));
  const auto file = require(ran(model, pipeline::ProgramIo::Float, input, folder.path() / "p.tflite"));
  EXPECT_EQ(file.front().second, program.front().second);
}

TEST(TfliteEdges, OperatorsAreListed) {
  const test::TempDir folder;
  pipeline::Options options;
  options.model = floatNetwork(folder);
  options.target = "ethos-u85-256";
  const auto list = require(pipeline::listOperators(options));
  ASSERT_EQ(list.operators.size(), 3u);
  EXPECT_EQ(list.operators[1].op, "tfl.ADD");
  EXPECT_EQ(list.operators[1].node, "sum");
  EXPECT_EQ(list.operators[1].place, pipeline::Place::Npu);
  EXPECT_TRUE(list.wholly);
}

/// Converters insert a QUANTIZE from uint8 to int8 at the same scale before networks that take pixels: the
/// convolution after it reads the pixels directly.
TEST(TfliteEdges, ConvertingPixelsToInt8TakesNoOperation) {
  const test::TempDir folder;
  test::TfliteFile file;
  file.tensors = {{"pixels", TensorType::UInt8, {1, 4, 4, 8}, "", -1, {0.5F}, {3}},
                  {"codes", TensorType::Int8, {1, 4, 4, 8}, "", -1, {0.5F}, {-125}},
                  {"weights", TensorType::Int8, {8, 1, 1, 8}, std::string(64, '\1'), -1, {1.0F}, {0}},
                  {"sums", TensorType::Int8, {1, 4, 4, 8}, "", -1, {4.0F}, {0}}};
  file.operators = {{"", kQuantize, {0}, {1}}, {"", kConv2d, {1, 2, -1}, {3}, test::optionsOf([] {
                                                  tflite::fb::Conv2DOptionsT conv;
                                                  conv.stride_w = conv.stride_h = 1;
                                                  return conv;
                                                }())}};
  file.inputs = {0};
  file.outputs = {3};
  const std::filesystem::path path = folder.path() / "network.tflite";
  std::ofstream(path, std::ios::binary) << file.bytes();
  Tensor pixels = Tensor::zeros(DType::UInt8, {1, 4, 4, 8});
  for (int64_t i = 0; i < 128; ++i) pixels.setIntegerAt(i, i * 2);
  for (const char* target : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
    pipeline::Options options;
    options.model = path;
    options.target = target;
    const auto build = require(pipeline::build(options));
    EXPECT_EQ(
        std::count_if(build.compiled.front().operations.begin(), build.compiled.front().operations.end(),
                      [](const auto& operation) { return !operation.kind.starts_with("DMA"); }),
        1)
        << target;
  }
  const auto result = require(ran(path, pipeline::ProgramIo::Float, pixels, folder.path() / "p.pte"));
  const Tensor& sums = result.front().second;
  for (int64_t at = 0; at < 16; ++at) {
    double sum = 0;
    for (int64_t c = 0; c < 8; ++c) sum += 0.5 * (static_cast<double>(at * 8 + c) * 2 - 3);
    EXPECT_EQ(sums.integerAt(at * 8), std::min(std::lround(sum / 4), 127L)) << at;
  }
}

/// The hardware scales operands of sums as TensorFlow Lite does; see npu_ir.hpp.
TEST(TfliteSums, AreOneOperation) {
  for (const char* name : {"add8_3", "add16_3", "sub8_3", "sub16_3"}) {
    for (const char* target : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
      pipeline::Options options;
      options.model = test::dataDir() / "tflite" / (std::string(name) + ".tflite");
      options.target = target;
      const auto build = require(pipeline::build(options));
      int64_t kernels = 0;
      for (const auto& operation : build.compiled.front().operations)
        kernels += !operation.kind.starts_with("DMA");
      EXPECT_EQ(kernels, 1) << name << " on " << target;
    }
  }
}

/// An operator whose tensors cannot be read has no results.
TEST(TfliteEdges, ImpossibleShapesAreReported) {
  const test::TempDir folder;
  test::TfliteFile file;
  const std::vector<int32_t> shape{1, 2000000000, 2000000, 10};
  file.tensors = {{"x", TensorType::Int8, shape, "", -1, {0.5F}, {0}},
                  {"y", TensorType::Int8, shape, "", -1, {0.5F}, {0}}};
  file.operators = {{"", kRelu, {0}, {1}}};
  file.inputs = {0};
  file.outputs = {1};
  file.plan = false;
  pipeline::Options options;
  options.model = folder.path() / "network.tflite";
  options.target = "ethos-u55-128";
  std::ofstream(options.model, std::ios::binary) << file.bytes();
  const auto build = pipeline::build(options);
  ASSERT_FALSE(build.ok());
  EXPECT_THAT(build.error().str(), testing::HasSubstr("has the impossible shape [1,2000000000,2000000,10]"));
}

}  // namespace
}  // namespace carina
