// SPDX-License-Identifier: Apache-2.0
// What carina verify reports at the end.
#include "report/verification.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aten/ops.hpp"
#include "base/npy.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(VerificationText, PartsWithoutLayersOfTheirOwnAreOnTheNpu) {
  pipeline::Verification verification;
  verification.samples = 2;
  verification.delegates = 1;
  verification.cycles = 1234;
  const std::string text = verificationText(verification, false);
  EXPECT_THAT(text, HasSubstr("partly on the CPU\n"));
  EXPECT_THAT(text,
              HasSubstr("NPU and TOSA agree bit for bit: results equal over 2 samples; 1,234 NPU cycles"));
  verification.delegateMismatches = 1;
  EXPECT_THAT(verificationText(verification, false), HasSubstr("NPU and TOSA DIFFER"));
}

/// What rounding at the ends costs does not depend on whether the caller or the program converts.
TEST(Verification, EndsAreRoundedToCodesAlsoWithIntegerOutputs) {
  std::vector<double> decibels;
  for (const auto io : {pipeline::ProgramIo::Float, pipeline::ProgramIo::Int8}) {
    pipeline::Options options;
    options.model = test::modelFile("residual.pt2");
    options.calibration = test::modelFile("residual.npz");
    options.target = "ethos-u85-256";
    options.inputs = options.outputs = io;
    const pipeline::Build build = require(pipeline::build(options));
    const auto samples =
        require(pipeline::verificationSamples(build, require(readArrays(options.calibration))));
    decibels.push_back(require(pipeline::verify(build, samples)).outputs.at(0).ends.decibels());
  }
  EXPECT_DOUBLE_EQ(decibels[0], decibels[1]);
}

TEST(VerificationText, CheckerFindingsAreListed) {
  pipeline::Verification verification;
  verification.samples = verification.delegates = 1;
  EXPECT_THAT(verificationText(verification, false), Not(HasSubstr("checker")));
  EXPECT_TRUE(verification.ok());
  verification.findings = {"NPU call 0, offset 0x270: hazard: BLOCKDEP 7"};
  EXPECT_THAT(verificationText(verification, false),
              HasSubstr("  NPU call 0, offset 0x270: hazard: BLOCKDEP 7\n"));
  EXPECT_FALSE(verification.ok());
}

TEST(VerificationText, WrongIntegersAreAnError) {
  pipeline::Verification verification;
  verification.samples = verification.delegates = 1;
  verification.outputs.emplace_back().name = "y";
  EXPECT_TRUE(verification.ok());
  verification.outputs[0].elements = 8;
  verification.outputs[0].wrongIntegers = 3;
  verification.outputs[0].expected = 5;
  EXPECT_FALSE(verification.ok());
  EXPECT_THAT(
      verificationText(verification, false),
      HasSubstr(
          "output y is WRONG: 3 of 8 integers differ from the network's, the first is 0 instead of 5\n"));
}

TEST(VerificationText, ValuesThatLeaveTheSimulationAreListedWorstFirst) {
  pipeline::Verification verification;
  verification.samples = verification.delegates = 1;
  verification.drift = {{"first", "first (module a)", 100, 0, 1},
                        {"second", "second (module b)", 200, 3, 2},
                        {"third", "third (module c)", 300, 20, 706}};
  const std::string text = verificationText(verification, false);
  EXPECT_THAT(text, HasSubstr("off the simulation"));
  EXPECT_THAT(text, Not(HasSubstr("first (module a)")));
  EXPECT_LT(text.find("third (module c)"), text.find("second (module b)"));
  EXPECT_THAT(text, HasSubstr("706"));
  EXPECT_TRUE(verification.ok()) << "the program equals its graph";
  verification.drift.clear();
  EXPECT_THAT(verificationText(verification, false), Not(HasSubstr("off the simulation")));
}

TEST(Verification, AValueThatLeavesTheSimulationIsFound) {
  pipeline::Options options;
  options.model = test::modelFile("digits8.pt2");
  options.calibration = test::modelFile("digits8.npz");
  options.target = "ethos-u55-128";
  auto built = require(pipeline::build(options));
  const auto arrays = require(readArrays(options.calibration));
  const auto samples = require(pipeline::verificationSamples(built, arrays));
  const auto drifting = [&] {
    const auto verified = pipeline::verify(built, std::span(samples).first(1));
    EXPECT_TRUE(verified.ok() && verified->ok());
    std::vector<std::string> names;
    for (const pipeline::DriftResult& drift : verified->drift) {
      EXPECT_GT(drift.elements, 0);
      if (drift.beyondOneLsb > 0) names.push_back(drift.value);
    }
    EXPECT_GE(verified->drift.size(), 8u) << "values are compared";
    return names;
  };
  EXPECT_THAT(drifting(), testing::IsEmpty());
  // Changes the last convolution's bias in the simulation.
  ir::Value* bias = nullptr;
  for (const auto& constant : built.simulation->constants()) {
    if (constant->dtype() == DType::Int32 && constant->shape() == Shape{32}) bias = constant.get();
  }
  ASSERT_NE(bias, nullptr);
  Tensor other = Tensor::uninitialized(DType::Int32, bias->shape());
  for (int64_t i = 0; i < 32; ++i)
    other.setIntegerAt(i, bias->constant().integerAt(i) + (i == 5 ? 100000 : 0));
  bias->setConstant(std::move(other));
  const std::vector<std::string> names = drifting();
  EXPECT_THAT(names, testing::Contains("adaptive_avg_pool2d"));
  EXPECT_THAT(names, Not(testing::Contains("hardtanh"))) << "it precedes the change";
}

/// Computed operator by operator in integers, a network has the codes of its program; in float it rounds
/// differently.
TEST(Verification, IntegerSimulationProducesTheCodesOfTheProgram) {
  for (const char* network : {"digits8", "residual", "mixed", "language"}) {
    for (const auto quantization : {pipeline::Quantization::Int8, pipeline::Quantization::Int16x8}) {
      SCOPED_TRACE(network);
      pipeline::Options options;
      options.model = test::modelFile(std::string(network) + ".pt2");
      options.calibration = test::modelFile(std::string(network) + ".npz");
      options.target = "ethos-u85-256";
      options.quantization = quantization;
      auto built = require(pipeline::build(options));
      const auto arrays = require(readArrays(options.calibration));
      const auto samples = require(pipeline::verificationSamples(built, arrays));
      const auto verified = require(
          pipeline::verify(built, std::span(samples).first(2), nullptr, pipeline::Simulation::Integers));
      EXPECT_TRUE(verified.ok());
      // The CPU quantizes an input of the program.
      EXPECT_GE(verified.inIntegers + 1, verified.quantized);
      EXPECT_GE(verified.drift.size(), 3u) << "values are compared";
      for (const pipeline::DriftResult& drift : verified.drift) EXPECT_EQ(drift.worstLsb, 0) << drift.value;
      for (const pipeline::OutputResult& output : verified.outputs) EXPECT_EQ(output.worstLsb, 0);
    }
  }
}

/// int64 is computed in 32 bits unless samples show that this does not suffice; otherwise the difference is
/// found.
TEST(Verification, IntegersBeyond32BitsAreComputedOnTheCpuOrFound) {
  const std::vector<quantize::Sample> samples{{Tensor::from({2}, std::vector<int64_t>{5, int64_t{1} << 40})}};
  const auto verified = [&](bool known) {
    ir::Graph graph("network");
    ir::Builder b(graph);
    ir::Value* x = graph.addInput({DType::Int64, {2}}, "x");
    graph.setOutputs({aten::Flip::create(b, x, ir::Ints{0}).output()});
    pipeline::Options options;
    options.target = "ethos-u85-256";
    options.madeUpSamples = true;
    std::vector<pipeline::StageTime> times;
    auto front = require(pipeline::frontOf(options, std::move(graph), times));
    if (known) front.wideIntegers = require(quantize::wideIntegers(front.quantized, samples, nullptr));
    return require(pipeline::verify(require(pipeline::buildFrom(std::move(front), options, {})), samples));
  };
  const pipeline::Verification right = verified(true), wrong = verified(false);
  EXPECT_TRUE(right.ok());
  EXPECT_EQ(right.delegates, 0u);
  EXPECT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.delegates, 1u);
  EXPECT_EQ(wrong.outputs[0].wrongIntegers, 1);
  EXPECT_EQ(wrong.outputs[0].expected, int64_t{1} << 40);
}

/// TOSA wraps products, the NPU saturates them.
TEST(Verification, ProductsBeyondInt32AreAnErrorAtTheOperator) {
  ir::Graph graph("network");
  ir::Builder b(graph, nullptr, std::make_shared<const ir::Location>(ir::Location{"triple", "", ""}));
  ir::Value* x = graph.addInput({DType::Int32, {1, 2}}, "x");
  graph.setOutputs({aten::MulScalar::create(b, x, int64_t{3}).output()});
  pipeline::Options options;
  options.target = "ethos-u85-256";
  options.madeUpSamples = true;
  std::vector<pipeline::StageTime> times;
  auto front = require(pipeline::frontOf(options, std::move(graph), times));
  const auto built = require(pipeline::buildFrom(std::move(front), options, {}));
  const auto verified = [&](int32_t number) {
    const std::vector<quantize::Sample> samples{{Tensor::from({1, 2}, std::vector<int32_t>{7, number})}};
    return pipeline::verify(built, samples);
  };
  EXPECT_TRUE(require(verified(-715'827'882)).ok());
  EXPECT_THAT(errorOf(verified(715'827'883)), HasSubstr("triple: the product 2147483649 overflows int32"));
}

TEST(Verification, TwoQuantizationsOfOneValueAreTwoLayers) {
  ir::Graph graph("network");
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Float32, {1, 2, 4, 4}}, "x");
  const auto coded = [&](ir::Value* value, double scale, int64_t zero) {
    ir::Value* codes =
        aten::QuantizePerTensor::create(b, value, scale, zero, int64_t{-128}, int64_t{127}, DType::Int8)
            .output();
    return aten::DequantizePerTensor::create(b, codes, scale, zero, int64_t{-128}, int64_t{127}, DType::Int8,
                                             std::nullopt)
        .output();
  };
  ir::Value* pooled = aten::AdaptiveAvgPool2d::create(b, coded(x, 1.0 / 128, 0), ir::Ints{2, 2}).output();
  pooled->name = "pooled";
  graph.setOutputs({coded(pooled, 0.01, -128), coded(pooled, 0.005, 7)});
  pipeline::Options options;
  options.target = "ethos-u85-256";
  std::vector<pipeline::StageTime> times;
  auto front = require(pipeline::frontOf(options, std::move(graph), times));
  const auto built = require(pipeline::buildFrom(std::move(front), options, {}));
  Tensor sample = Tensor::uninitialized(DType::Float32, {1, 2, 4, 4});
  for (int64_t i = 0; i < sample.numElements(); ++i)
    sample.mutableAs<float>()[static_cast<size_t>(i)] = static_cast<float>(i) / 32 - 0.3f;
  const std::vector<quantize::Sample> samples{{sample}};
  const auto verified = require(pipeline::verify(built, samples));
  EXPECT_TRUE(verified.ok());
  std::vector<std::string> names;
  for (const pipeline::LayerResult& layer : verified.layers) names.push_back(layer.value);
  EXPECT_THAT(names, testing::UnorderedElementsAre("pooled", "pooled:2"));
}

}  // namespace
}  // namespace carina::report
