// SPDX-License-Identifier: Apache-2.0
// What cannot be compiled is reported with operator, location, reason and remedy, all problems at once;
// damaged networks do no harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/file.hpp"
#include "lower_tfl/lower.hpp"
#include "tflite/file_builder.hpp"
#include "tflite/graph_builder.hpp"

namespace carina {
namespace {

using test::TfliteFile;
using testing::AllOf;
using testing::HasSubstr;
using tflite::TensorType;
namespace fb = tflite::fb;

constexpr int32_t kAddCode = 0, kConv2dCode = 3, kSoftmax = 25, kReshape = 22, kWhile = 119, kMean = 40;

/// The errors of a file; empty if it lowers.
std::string problems(const std::string& bytes) {
  const auto model = tflite::readModel(asBytes(bytes));
  if (!model) return model.error().str();
  const auto graph = tflite::buildGraph(*model, nullptr);
  if (!graph) return graph.error().str();
  const auto tosa = lower_tfl::lowerToTosa(*graph);
  return tosa ? "" : tosa.error().str();
}

template <typename T>
std::string bytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TfliteFile convolution() {
  TfliteFile file;
  fb::Conv2DOptionsT options;
  options.stride_w = options.stride_h = 1;
  file.tensors = {{"x", TensorType::Int8, {1, 4, 4, 2}, "", -1, {0.5F}, {3}},
                  {"filter", TensorType::Int8, {3, 2, 2, 2}, std::string(24, '\5'), -1, {0.1F}, {0}},
                  {"bias", TensorType::Int32, {3}, bytesOf<int32_t>({1, 2, 3}), -1, {0.05F}, {0}},
                  {"y", TensorType::Int8, {1, 4, 4, 3}, "", -1, {0.7F}, {-9}}};
  file.operators = {{"", kConv2dCode, {0, 1, 2}, {3}, test::optionsOf(options)}};
  file.inputs = {0};
  file.outputs = {3};
  return file;
}

TEST(TfliteRefusals, AConvolutionLowers) {
  EXPECT_EQ(problems(convolution().bytes()), "");
}

TEST(TfliteRefusals, AxesOfScalars) {
  TfliteFile file;
  constexpr int32_t kConcatenation = 2, kGather = 36, kUnpack = 88;
  file.tensors = {{"x", TensorType::Int8, {}, ""}, {"y", TensorType::Int8, {}, ""}};
  file.tensors.push_back({"i", TensorType::Int32, {1}, bytesOf<int32_t>({0})});
  file.inputs = {0};
  file.outputs = {1};
  const std::string expected = "axis 0 does not exist in 0 dimensions";
  file.operators = {{"", kUnpack, {0}, {1}, test::optionsOf(fb::UnpackOptionsT{})}};
  EXPECT_THAT(problems(file.bytes()), HasSubstr(expected));
  file.operators = {{"", kConcatenation, {0, 0}, {1}, test::optionsOf(fb::ConcatenationOptionsT{})}};
  EXPECT_THAT(problems(file.bytes()), HasSubstr(expected));
  file.operators = {{"", kGather, {0, 2}, {1}, test::optionsOf(fb::GatherOptionsT{})}};
  EXPECT_THAT(problems(file.bytes()), HasSubstr(expected));
}

TEST(TfliteRefusals, InvalidPermutations) {
  constexpr int32_t kTranspose = 39;
  for (const std::vector<int32_t>& order :
       std::vector<std::vector<int32_t>>{{1'000'000, 0}, {0, -1}, {1, 1}, {0}, {2, 1, 0}}) {
    TfliteFile file;
    const auto size = static_cast<int32_t>(order.size());
    file.tensors = {{"x", TensorType::Int8, {2, 3}, ""},
                    {"order", TensorType::Int32, {size}, bytesOf<int32_t>(order)},
                    {"y", TensorType::Int8, {3, 2}, ""}};
    file.operators = {{"", kTranspose, {0, 1}, {2}}};
    file.inputs = {0};
    file.outputs = {2};
    EXPECT_THAT(problems(file.bytes()), HasSubstr("is not a permutation of 2 dimensions"));
  }
}

TEST(TfliteRefusals, InputsAndOutputsWithoutElements) {
  TfliteFile file;
  file.tensors = {{"x", TensorType::Int32, {0, 7}, ""}, {"y", TensorType::Int8, {4}, ""}};
  file.inputs = file.outputs = {0};
  EXPECT_THAT(problems(file.bytes()), HasSubstr("the input 'x' has no elements"));
  file.inputs = {1};  // x is now a constant
  EXPECT_THAT(problems(file.bytes()), HasSubstr("the output 'x' has no elements"));
}

TEST(TfliteRefusals, FloatNetworks) {
  TfliteFile file = convolution();
  for (TfliteFile::Tensor& tensor : file.tensors) {
    tensor.type = TensorType::Float32;
    tensor.data.resize(tensor.data.size() * 4);
  }
  EXPECT_THAT(problems(file.bytes()), AllOf(HasSubstr("operator 0 (CONV_2D) 'y'"), HasSubstr("f32[1,4,4,3]"),
                                            HasSubstr("quantize the whole network")));
}

TEST(TfliteRefusals, ReportsEveryOperatorAtOnce) {
  TfliteFile file = convolution();
  file.tensors.push_back({"z", TensorType::Int8, {1, 4, 4, 3}, "", -1});
  file.tensors.push_back({"w", TensorType::Int8, {1, 4, 4, 3}, "", -1});
  file.operators.push_back({"", kWhile, {3}, {4}});
  file.operators.push_back({"my-op", 0, {4}, {5}});
  file.outputs = {5};
  EXPECT_THAT(problems(file.bytes()), AllOf(HasSubstr("operator 1 (WHILE) 'z': WHILE runs subgraphs"),
                                            HasSubstr("operator 2 (my-op) 'w': the custom operator my-op")));
}

TEST(TfliteRefusals, ShapesThatDoNotFit) {
  const auto refused = [](const TfliteFile& file, const char* why) {
    EXPECT_THAT(problems(file.bytes()), HasSubstr(why));
  };
  TfliteFile file = convolution();
  file.tensors[3].shape = {1, 4, 4, 4};
  refused(file, "result 'y' has shape [1,4,4,4] in the file, but its operands imply [1,4,4,3]");
  file = convolution();
  file.tensors[0].shape = {1, -1, 4, 2};
  refused(file, "dynamic shape");
  file = convolution();
  file.tensors[1].data.resize(7);
  refused(file, "needs 24 bytes, but 7 are stored");
  file = convolution();
  file.tensors[1].data.clear();
  refused(file, "tensor 'filter' is used before it is computed");
  file = convolution();
  file.tensors[1].scales = {0.1F, 0.2F};
  refused(file, "2 scales");
  file = convolution();
  file.tensors[3].scales = {0};
  refused(file, "has scale 0");
  file = convolution();
  file.tensors[3].scales = {1e30F};
  refused(file, "has scale 1e+30");
  file = convolution();
  file.tensors[3].zeroPoints = {300};
  refused(file, "zero point 300");
  file = convolution();
  file.operators[0].inputs = {0};
  refused(file, "operand 'filter' is missing");
}

TEST(TfliteRefusals, ValuesOutOfRange) {
  TfliteFile file = convolution();
  file.tensors[3].scales = {1e-15F};
  EXPECT_THAT(problems(file.bytes()), HasSubstr("between its scales is too large"));
  fb::Conv2DOptionsT options;  // stride 0
  file = convolution();
  file.operators[0].options = test::optionsOf(options);
  EXPECT_THAT(problems(file.bytes()), HasSubstr("stride 0"));
  options.stride_w = options.stride_h = 1;
  options.fused_activation_function = 4;
  file.operators[0].options = test::optionsOf(options);
  EXPECT_THAT(problems(file.bytes()), HasSubstr("fused activation"));
  options.fused_activation_function = 77;
  file.operators[0].options = test::optionsOf(options);
  EXPECT_THAT(problems(file.bytes()), HasSubstr("unknown value 77"));
}

TEST(TfliteRefusals, AxesMustBeConstant) {
  TfliteFile file;
  file.tensors = {{"x", TensorType::Int8, {1, 4, 4, 2}, "", -1},
                  {"axes", TensorType::Int32, {2}, "", -1},
                  {"y", TensorType::Int8, {1, 2}, "", -1}};
  file.operators = {{"", kMean, {0, 1}, {2}}};
  file.inputs = {0, 1};
  file.outputs = {2};
  EXPECT_THAT(problems(file.bytes()), HasSubstr("its axes are computed at run time"));
  file.inputs = {0};
  file.tensors[1].data = bytesOf<int32_t>({1, 7});
  EXPECT_THAT(problems(file.bytes()), HasSubstr("axis 7 does not exist"));
}

/// Four bytes are replaced at every second offset of a network of several operators.
TEST(TfliteRefusals, DamagedNetworksAreRefusedOrHarmless) {
  TfliteFile file = convolution();
  fb::SoftmaxOptionsT beta;
  beta.beta = 1;
  file.tensors.push_back({"sum", TensorType::Int8, {1, 4, 4, 3}, "", -1});
  file.tensors.push_back({"shape", TensorType::Int32, {2}, bytesOf<int32_t>({16, 3}), -1});
  file.tensors.push_back({"flat", TensorType::Int8, {16, 3}, "", -1});
  file.tensors.push_back({"p", TensorType::Int8, {16, 3}, "", -1, {1.0F / 256}, {-128}});
  file.operators.push_back({"", kAddCode, {3, 3}, {4}, test::optionsOf(fb::AddOptionsT())});
  file.operators.push_back({"", kReshape, {4, 5}, {6}});
  file.operators.push_back({"", kSoftmax, {6}, {7}, test::optionsOf(beta)});
  file.outputs = {7};
  const std::string bytes = file.bytes();
  ASSERT_EQ(problems(bytes), "");
  for (size_t at = 0; at + 4 <= bytes.size(); at += 2) {
    for (const uint32_t value : {0u, 1u, 0xffffffffu, 0x7fffffffu, 0x10001u}) {
      std::string damaged = bytes;
      std::memcpy(damaged.data() + at, &value, 4);
      (void)problems(damaged);
    }
  }
}

}  // namespace
}  // namespace carina
