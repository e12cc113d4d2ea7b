// SPDX-License-Identifier: Apache-2.0
// Networks whose values are far outside the range of their codes, as in random networks: the NPU computes
// what TOSA defines.
#include <gtest/gtest.h>

#include <fstream>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "pipeline/verify.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"
#include "tosa/ops.hpp"
#include "tosa_io/tosa_writer.hpp"

namespace carina::pipeline {
namespace {

ir::Value* coded(ir::Builder& b, ir::Value* value, double scale) {
  ir::Value* codes =
      aten::QuantizePerTensor::create(b, value, scale, int64_t{0}, int64_t{-128}, int64_t{127}, DType::Int8)
          .output();
  return aten::DequantizePerTensor::create(b, codes, scale, int64_t{0}, int64_t{-128}, int64_t{127},
                                           DType::Int8, std::nullopt)
      .output();
}

Tensor ramp(const Shape& shape, float first, float step) {
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.mutableAs<float>()[static_cast<size_t>(i)] = first + step * static_cast<float>(i);
  return tensor;
}

/// Compiles the graph, runs it with `sample`, and expects the model to equal the TOSA interpreter. Returns
/// the worst error of each output, in codes.
std::vector<double> run(ir::Graph graph, const Options& options, const Tensor& sample) {
  std::vector<StageTime> times;
  auto front = require(frontOf(options, std::move(graph), times));
  const auto built = require(buildFrom(std::move(front), options, {}));
  EXPECT_TRUE(built.partitioned.wholly);
  const std::vector<quantize::Sample> samples{{sample}};
  const auto verified = require(verify(built, samples));
  EXPECT_TRUE(verified.ok());
  std::vector<double> worst;
  for (const OutputResult& output : verified.outputs) worst.push_back(output.worstLsb);
  return worst;
}

TEST(OddNetworks, ConvolutionResultsFarBeyondTheirCodes) {
  // A factor of 2^19 between the scales: RESCALE accepts sums below 2^11, and these reach 2^14. One channel's
  // factor is small, and its sums keep their values.
  ir::Graph graph("network");
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Float32, {1, 2, 3, 3}}, "x");
  ir::Value* weight =
      graph.addConstant(Tensor::from<int8_t>({2, 2, 1, 1}, std::vector<int8_t>{127, 127, 1, 1}));
  ir::Value* scales = graph.addConstant(Tensor::from<double>({2}, std::vector<double>{1.0 / 32, 0x1p-31}));
  ir::Value* zeros = graph.addConstant(Tensor::zeros(DType::Int64, {2}));
  ir::Value* kernel = aten::DequantizePerChannel::create(b, weight, scales, zeros, int64_t{0}, int64_t{-128},
                                                         int64_t{127}, DType::Int8, std::nullopt)
                          .output();
  ir::Value* y = aten::Conv2d::create(b, coded(b, x, 1.0 / 64), kernel, nullptr, ir::Ints{1, 1},
                                      ir::Ints{0, 0}, ir::Ints{1, 1}, int64_t{1})
                     .output();
  graph.setOutputs({coded(b, y, 0x1p-30)});
  Options options;
  options.target = "ethos-u85-256";
  const std::vector<double> worst = run(std::move(graph), options, ramp({1, 2, 3, 3}, -1, 0.125f));
  ASSERT_EQ(worst.size(), 1u);
  EXPECT_LE(worst[0], 1) << "codes off PyTorch's simulation";
}

TEST(OddNetworks, SumsThatExceed32Bits) {
  ir::Graph graph("network");
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Float32, {1, 1, 257, 300}}, "x");
  graph.setOutputs({aten::MeanDim::create(b, x, ir::Ints{2, 3}, false, std::nullopt).output()});
  Options options;
  options.target = "ethos-u55-128";
  options.quantization = Quantization::Int16x8;
  options.madeUpSamples = true;
  // All values at the end of their range.
  const std::vector<double> worst = run(std::move(graph), options, ramp({1, 1, 257, 300}, 100, 0));
  ASSERT_EQ(worst.size(), 1u);
  EXPECT_LE(worst[0], 1) << "codes off PyTorch's simulation";
}

/// No target accepts a .tosa with floats, even if only a constant output is float; target cpu accepts no
/// .tosa at all.
TEST(OddNetworks, TosaGraphsOfFloatsAreRefused) {
  const test::TempDir folder;
  for (const bool computed : {true, false}) {
    ir::Graph graph("g");
    ir::Builder b(graph);
    ir::Value* x = graph.addInput({computed ? DType::Float32 : DType::Int8, {1, 4}}, "x");
    ir::Value* y = computed ? tosa::Exp::create(b, x).output() : tosa::Identity::create(b, x).output();
    graph.setOutputs({y});
    if (!computed) graph.setOutputs({y, graph.addConstant(ramp({1, 4}, 0, 1))});
    const auto bytes = require(tosa_io::writeTosa(graph));
    Options options;
    options.model = folder / "floats.tosa";
    std::ofstream(options.model, std::ios::binary) << bytes;
    for (const char* target : {"ethos-u55-128", "ethos-u85-256", "ethos-n78-4tops-4ple", "cpu"}) {
      options.target = target;
      const std::string error = errorOf(build(options));
      const char* why =
          options.target == "cpu" ? "can only be compiled for an NPU" : "computes in floating point";
      EXPECT_NE(error.find(why), std::string::npos) << target << ": " << error;
    }
  }
}

/// The operator itself promotes their types, even without a cast before it.
TEST(OddNetworks, MixedIntegersPromoteToTheWiderType) {
  ir::Graph graph("network");
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Int16, {3}}, "x");
  ir::Value* least = graph.addConstant(Tensor::from({3}, std::vector<int32_t>{-1, 7, 70'000}));
  graph.setOutputs({aten::Fmin::create(b, x, least).output()});
  ASSERT_EQ(graph.outputs()[0]->dtype(), DType::Int32);
  Options options;
  options.target = "ethos-u55-128";
  options.madeUpSamples = true;
  std::vector<StageTime> times;
  auto front = require(frontOf(options, std::move(graph), times));
  const auto built = require(buildFrom(std::move(front), options, {}));
  const std::vector<quantize::Sample> samples{{Tensor::from({3}, std::vector<int16_t>{5, -9, 32'000})}};
  const auto verified = require(verify(built, samples));
  EXPECT_TRUE(verified.ok());
}

TEST(OddNetworks, BooleansAreClampedLikeNumbers) {
  ir::Graph graph("network");
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Bool, {2}}, "x");
  ir::Value* low = graph.addInput({DType::Bool, {2}}, "low");
  graph.setOutputs({aten::ClampTensor::create(b, x, low, low).output()});
  Tensor given = Tensor::zeros(DType::Bool, {2}), bound = given;
  given.setIntegerAt(0, 1);
  bound.setIntegerAt(1, 1);
  const auto results = require(aten::execute(graph, std::vector{given, bound}));
  EXPECT_EQ(results[0].integerAt(0), 0);
  EXPECT_EQ(results[0].integerAt(1), 1);
}

}  // namespace
}  // namespace carina::pipeline
