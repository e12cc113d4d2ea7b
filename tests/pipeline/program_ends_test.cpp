// SPDX-License-Identifier: Apache-2.0
// Pixels, layout and finish at the ends of a program: the network with them against the network without, in
// float; and whole programs on frames.
#include "pipeline/program_ends.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "base/file.hpp"
#include "base/npy.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/port_codes.hpp"
#include "pipeline/run.hpp"
#include "pipeline/verify.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

using ir::Ints;
using testing::HasSubstr;

const std::vector<double> kMean{0.485, 0.456, 0.406}, kDeviation{0.229, 0.224, 0.225};

Tensor randomFloats(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  for (float& value : tensor.mutableAs<float>()) value = values(random);
  return tensor;
}

Tensor randomFrame(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> values(0, 255);
  Tensor tensor = Tensor::uninitialized(DType::UInt8, shape);
  for (uint8_t& value : tensor.mutableAs<uint8_t>()) value = static_cast<uint8_t>(values(random));
  return tensor;
}

/// The network's input for a frame [1, C, H, W].
Tensor normalised(const Tensor& frame, const std::vector<double>& mean,
                  const std::vector<double>& deviation) {
  Tensor result = Tensor::uninitialized(DType::Float32, frame.shape());
  const auto plane = static_cast<size_t>(frame.numElements() / frame.dim(1));
  for (size_t i = 0; i < static_cast<size_t>(frame.numElements()); ++i) {
    const size_t c = i / plane;
    result.mutableAs<float>()[i] = static_cast<float>(
        (frame.as<uint8_t>()[i] / 255.0 - mean[c % mean.size()]) / deviation[c % deviation.size()]);
  }
  return result;
}

Tensor permuted(const Tensor& tensor, const std::vector<size_t>& order) {
  Shape shape;
  for (size_t d : order) shape.push_back(tensor.shape()[d]);
  Tensor result = Tensor::uninitialized(tensor.dtype(), shape);
  std::vector<int64_t> strides(4, 1);
  for (size_t d = 3; d-- > 0;) strides[d] = strides[d + 1] * tensor.shape()[d + 1];
  const auto size = static_cast<size_t>(dtypeSize(tensor.dtype()));
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    int64_t rest = i, from = 0;
    for (size_t d = 4; d-- > 0;) {
      from += rest % shape[d] * strides[order[d]];
      rest /= shape[d];
    }
    std::copy_n(tensor.bytes().data() + static_cast<size_t>(from) * size, size,
                result.mutableBytes().data() + static_cast<size_t>(i) * size);
  }
  return result;
}

/// x -> conv (-> more), on an image of three channels.
ir::Graph convolution(const Ints& padding, int64_t groups = 1) {
  ir::Graph graph("net");
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Float32, {1, 3, 7, 6}}, "x");
  const int64_t outputs = 6;
  ir::Value* weight = graph.addConstant(randomFloats({outputs, 3 / groups, 3, 3}, 1));
  ir::Value* bias = graph.addConstant(randomFloats({outputs}, 2));
  graph.setOutputs(
      {aten::Conv2d::create(b, x, weight, bias, Ints{2, 1}, padding, Ints{1, 1}, groups).output()});
  return graph;
}

size_t countConvolutions(const ir::Graph& graph) {
  size_t count = 0;
  for (const ir::Node* node : graph.nodes()) count += ir::isa<aten::Conv2d>(node) ? 1 : 0;
  return count;
}

/// Compares the network on normalised values with the network that takes pixels.
void expectSame(const ir::Graph& before, const EndOptions& options, size_t convolutions) {
  ir::Graph graph = before.clone();
  const auto ends = require(adaptEnds(graph, options, ProgramIo::UInt8, 0, false));
  EXPECT_EQ(countConvolutions(graph), convolutions);
  EXPECT_EQ(graph.inputs()[0]->dtype(), DType::UInt8);
  const Tensor frame = randomFrame(before.inputs()[0]->shape(), 3);
  const InputForm& form = ends.inputs[0];
  const Tensor given[] = {normalised(frame, form.mean, form.deviation)};
  const Tensor pixels[] = {options.channelsLast() ? permuted(frame, {0, 2, 3, 1}) : frame};
  const auto wanted = require(aten::execute(before, given));
  const auto found = require(aten::execute(graph, pixels));
  const Tensor result = options.channelsLast() && found.front().rank() == 4
                            ? permuted(found.front(), {0, 3, 1, 2})
                            : found.front();
  ASSERT_EQ(result.shape(), wanted.front().shape());
  for (int64_t i = 0; i < result.numElements(); ++i)
    ASSERT_NEAR(result.realAt(i), wanted.front().realAt(i), 2e-4) << "element " << i;
}

EndOptions imageNet() {
  EndOptions options;
  options.mean = kMean;
  options.deviation = kDeviation;
  return options;
}

TEST(PixelInput, AConvolutionWithoutPaddingAbsorbsTheNormalisation) {
  expectSame(convolution({0, 0}), imageNet(), 1);
  expectSame(convolution({0, 0}, 3), imageNet(), 1);
}

TEST(PixelInput, PaddingStaysZeroAndIsNotNormalised) {
  expectSame(convolution({1, 1}), imageNet(), 2);
  EndOptions noMean;
  noMean.deviation = kDeviation;
  expectSame(convolution({1, 1}), noMean, 1);
}

TEST(PixelInput, OneValueForAllChannelsNeedsNoConvolution) {
  EndOptions half;
  half.mean = half.deviation = {0.5};
  expectSame(convolution({1, 1}), half, 1);
  expectSame(convolution({0, 0}), half, 1);
  half.layout = Layout::ChannelsLast;
  expectSame(convolution({1, 0}), half, 1);
}

TEST(PixelInput, ChannelsLast) {
  EndOptions options = imageNet();
  options.layout = Layout::ChannelsLast;
  expectSame(convolution({0, 0}), options, 1);
  expectSame(convolution({1, 1}), options, 2);
}

TEST(PixelInput, EveryReaderGetsItsOwnConversion) {
  ir::Graph graph = convolution({0, 0});
  ir::Builder b(graph);
  ir::Value* x = graph.inputs()[0];
  ir::Value* weight = graph.addConstant(randomFloats({2, 3, 3, 3}, 5));
  ir::Value* padded =
      aten::Conv2d::create(b, x, weight, nullptr, Ints{2, 1}, Ints{1, 1}, Ints{1, 1}, 1).output();
  graph.setOutputs({padded, graph.outputs()[0], aten::Relu::create(b, x).output()});
  expectSame(graph, imageNet(), 3);
  EndOptions last = imageNet();
  last.layout = Layout::ChannelsLast;
  expectSame(graph, last, 3);
}

TEST(PixelInput, ALinearLayerAbsorbsOneScale) {
  ir::Graph graph("net");
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Float32, {2, 12}}, "x");
  ir::Value* weight = graph.addConstant(randomFloats({5, 12}, 1));
  graph.setOutputs({aten::Linear::create(b, x, weight, nullptr).output()});
  EndOptions options;
  options.mean = {0.25};
  options.deviation = {0.5};
  expectSame(graph, options, 0);
  ASSERT_TRUE(adaptEnds(graph, options, ProgramIo::UInt8, 0, false).ok());
  EXPECT_EQ(graph.numNodes(), 2u) << "conversion and linear";
}

TEST(ProgramEnds, MismatchesAreReportedAtTheirOption) {
  const auto refused = [](const EndOptions& options, ProgramIo type, bool carried = false) {
    ir::Graph graph = convolution({0, 0});
    return errorOf(adaptEnds(graph, options, type, 0, carried));
  };
  EndOptions options = imageNet();
  EXPECT_THAT(refused(options, ProgramIo::Int8), HasSubstr("no input of the program is uint8"));
  EXPECT_THAT(refused(options, ProgramIo::UInt8, true), HasSubstr("the network is already quantized"));
  options.mean = {0.1, 0.2};
  EXPECT_THAT(refused(options, ProgramIo::UInt8), HasSubstr("has 2 values, but input 'x'"));
  options.mean = {127.5};
  EXPECT_THAT(refused(options, ProgramIo::UInt8), HasSubstr("give 0.5"));
  options.mean.clear();
  options.deviation = {0, 1, 1};
  EXPECT_THAT(refused(options, ProgramIo::UInt8), HasSubstr("--std: 0 is not between"));
  EndOptions finish;
  finish.finish = Finish::Softmax;
  finish.finishDim = 7;
  EXPECT_THAT(refused(finish, ProgramIo::Float), HasSubstr("has no dimension 7"));
  finish.finishDim.reset();
  EXPECT_EQ(refused(finish, ProgramIo::Float), "");
  EXPECT_THAT(refused(finish, ProgramIo::Float, true), HasSubstr("the network is already quantized"));
}

/// The network normalises its pixels itself.
TEST(ProgramEnds, APixelInputOfTheNetworkTakesNoMean) {
  ir::Graph graph("net");
  ir::Builder b(graph);
  ir::Value* pixels = graph.addInput({DType::UInt8, {1, 3, 7, 6}}, "pixels");
  graph.setOutputs({aten::ToDtype::create(b, pixels, DType::Float32, false, false, std::nullopt).output()});
  EXPECT_THAT(errorOf(adaptEnds(graph, imageNet(), ProgramIo::UInt8, 0, false)),
              HasSubstr("input 'pixels' of the network is u8, not float"));
}

TEST(ProgramEnds, FinishIsTheLastOperatorAndLayoutFollowsIt) {
  ir::Graph graph = convolution({0, 0});
  EndOptions options;
  options.finish = Finish::Argmax;
  options.layout = Layout::ChannelsLast;
  ir::Graph classes = graph.clone();
  ASSERT_TRUE(adaptEnds(classes, options, ProgramIo::Float, 0, false).ok());
  EXPECT_EQ(classes.outputs()[0]->type, (ir::Type{DType::Int64, {1, 3, 4}}));
  options.finish = Finish::Softmax;
  const auto ends = require(adaptEnds(graph, options, ProgramIo::Float, 0, false));
  EXPECT_EQ(graph.outputs()[0]->shape(), (Shape{1, 3, 4, 6}));
  EXPECT_EQ(ends.channelsLastOutputs, std::vector<bool>{true});
  EXPECT_FALSE(adaptEnds(graph, options, ProgramIo::Float, 0, false).ok() &&
               graph.outputs()[0]->shape() != (Shape{1, 4, 6, 3}));
}

TEST(ProgramEnds, NetworkArraysAreConvertedForTheProgram) {
  ProgramEnds ends;
  ends.inputs.push_back({{1, 3, 4, 5}, true, kMean, kDeviation});
  const Tensor frame = randomFrame({1, 3, 4, 5}, 4);
  const Tensor last = permuted(frame, {0, 2, 3, 1});
  const auto taken = [&](const Tensor& array) {
    auto arrays = require(ends.asProgram({{"calib0", array}, {"labels", array}}));
    EXPECT_EQ(arrays[1].second.shape(), array.shape());
    return arrays[0].second;
  };
  for (const Tensor& given : {normalised(frame, kMean, kDeviation), frame, last}) {
    const Tensor pixels = taken(given);
    EXPECT_EQ(pixels.dtype(), DType::UInt8);
    EXPECT_EQ(pixels.shape(), last.shape());
    EXPECT_TRUE(std::equal(pixels.bytes().begin(), pixels.bytes().end(), last.bytes().begin()));
  }
  const Tensor stacked = taken(normalised(frame, kMean, kDeviation).reshaped({1, 1, 3, 4, 5}));
  EXPECT_EQ(stacked.shape(), (Shape{1, 1, 4, 5, 3}));
  const Tensor wild = Tensor::from(Shape{1, 3, 4, 5}, std::vector<float>(60, 30.0f));
  EXPECT_THAT(errorOf(ends.asProgram({{"calib0", wild}})),
              HasSubstr("calib0 holds 30, which --mean and --std map to pixel"));
}

TEST(PortTypes, TypesOfValuesThatAreNotFloatAreIdle) {
  ir::Graph graph("net");
  ir::Value* number = graph.addInput({DType::Float32, {4}}, "number");
  ir::Value* index = graph.addInput({DType::Int64, {4}}, "index");
  const std::vector<ir::Value*> floats{number, index}, integers{index};
  using Places = std::vector<std::string>;
  const auto places = [&](const PortTypes& in, const auto& inputs, const PortTypes& out,
                          const auto& outputs) {
    Places result;
    for (const Diagnostic& idle : idleTypes(in, inputs, out, outputs)) result.push_back(idle.place);
    return result;
  };
  const PortTypes none, all(ProgramIo::Int8), index8(ProgramIo::Float, {{1, ProgramIo::Int8}});
  EXPECT_EQ(places(all, integers, all, integers), Places{"--io"});
  EXPECT_EQ(places(all, integers, none, floats), Places{"--io-inputs"});
  EXPECT_EQ(places(none, floats, all, integers), Places{"--io-outputs"});
  EXPECT_EQ(places(all, integers, all, floats), Places{}) << "--io has an effect on the outputs";
  EXPECT_EQ(places(none, integers, none, integers), Places{});
  EXPECT_EQ(places(index8, floats, none, floats), Places{"--io-inputs"});
  EXPECT_EQ(places(all, floats, all, floats), Places{});
}

TEST(PortTypes, TypesOfNamedInputs) {
  ir::Graph graph("net");
  graph.addInput({DType::Float32, {1}}, "image");
  graph.addInput({DType::Float32, {1}}, "depth");
  const std::vector<std::pair<std::string, ProgramIo>> named{{"image", ProgramIo::UInt8},
                                                             {"in1", ProgramIo::Int16}};
  const auto types = require(portTypes(ProgramIo::Int8, named, graph.inputs(), "in"));
  EXPECT_EQ(types.of(0), ProgramIo::UInt8);
  EXPECT_EQ(types.of(1), ProgramIo::Int16);
  EXPECT_EQ(types.of(2), ProgramIo::Int8);
  const std::vector<std::pair<std::string, ProgramIo>> wrong{{"imag", ProgramIo::UInt8}};
  EXPECT_THAT(errorOf(portTypes(ProgramIo::Int8, wrong, graph.inputs(), "in")),
              HasSubstr("in0 ('image'), in1 ('depth')"));
}

size_t kernelCalls(const Build& build) {
  const auto& instructions = build.program.methods.front().chains.front().instructions;
  return static_cast<size_t>(std::count_if(
      instructions.begin(), instructions.end(),
      [](const pte::Instruction& each) { return std::holds_alternative<pte::KernelCall>(each); }));
}

// Whole programs
// -----------------------------------------------------------------------------------------------------------

class Camera : public testing::Test {
 protected:
  /// models/mobile.pt2 with frames as calibration data.
  Options options() const {
    Options options;
    options.model = test::modelFile("mobile.pt2");
    options.target = "ethos-u55-128";
    options.calibration = folder_ / "frames.npz";
    options.inputs = ProgramIo::UInt8;
    options.ends = imageNet();
    options.ends.layout = Layout::ChannelsLast;
    return options;
  }

  void SetUp() override {
    auto example = require(readNpz(test::modelFile("mobile.npz")));
    Shape shape = findTensor(example, "calib0")->shape();
    ASSERT_EQ(shape.size(), 5u);
    shape = {4, 1, shape[3], shape[4], shape[2]};
    frames_ = randomFrame(shape, 7);
    require(writeFile(folder_ / "frames.npz", formatNpz({{"calib0", frames_}})));
  }

  test::TempDir folder_;
  Tensor frames_;
};

TEST_F(Camera, FramesRunWhollyOnTheNpuAndMatchTheGraph) {
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    for (const Quantization precision : {Quantization::Int8, Quantization::Int16x8}) {
      Options camera = options();
      camera.target = target;
      camera.quantization = precision;
      const auto built = require(build(camera));
      EXPECT_TRUE(built.partitioned.wholly);
      const auto arrays = readNpz(camera.calibration);
      const auto samples = require(verificationSamples(built, *arrays));
      const auto verified = require(verify(built, samples));
      EXPECT_TRUE(verified.ok());
      for (const OutputResult& output : verified.outputs) {
        EXPECT_EQ(output.npuMismatches, 0);
        EXPECT_LE(output.worstLsb, 1);
      }
    }
  }
}

TEST_F(Camera, ARunAcceptsFramesAndNetworkInputs) {
  const auto built = require(build(options()));
  ASSERT_TRUE(writeOutput(built, folder_ / "m.pte").ok());
  const Tensor frame = slice(frames_, 0);
  RunOptions run;
  run.file = folder_ / "m.pte";
  const auto byFrame = require(runFile(run, {{"in0", frame}}));
  const Tensor numbers = normalised(permuted(frame, {0, 3, 1, 2}), kMean, kDeviation);
  const auto byNumbers = require(runFile(run, {{"in0", numbers}}));
  const ByteSpan a = byFrame.outputs[0].second.bytes(), b = byNumbers.outputs[0].second.bytes();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  run.raw = true;
  const auto raw = runFile(run, {{"in0", numbers}});
  EXPECT_FALSE(raw.ok());
}

TEST_F(Camera, TheProgramRecordsItsPixels) {
  const auto built = require(build(options()));
  const std::string bytes = *pte::writeProgram(built.program);
  const auto program = require(pte::readProgram(asBytes(bytes)));
  const ProgramCodes codes = codesOf(program);
  ASSERT_EQ(codes.inputs.size(), 1u);
  EXPECT_EQ(codes.inputs[0].mean, kMean);
  EXPECT_EQ(codes.inputs[0].deviation, kDeviation);
  EXPECT_TRUE(codes.inputs[0].channelsLast);
  EXPECT_DOUBLE_EQ(*codes.inputs[0].scale, 1.0 / 255);
  EXPECT_EQ(codes.inputs[0].zeroPoint, 0);
}

TEST(ProgramCodes, IntegerProgramsAcceptAndReturnFloats) {
  Options options;
  options.model = test::modelFile("digits8.pt2");
  options.calibration = test::modelFile("digits8.npz");
  options.target = "ethos-u55-128";
  const test::TempDir folder;
  const auto arrays = require(readNpz(options.calibration));
  const NamedTensors in{{"in0", *findTensor(arrays, "in0")}};
  std::vector<Tensor> results;
  for (const ProgramIo io : {ProgramIo::Float, ProgramIo::Int8, ProgramIo::UInt8}) {
    options.inputs = io;
    options.outputs = io == ProgramIo::Float ? ProgramIo::Float : ProgramIo::Int8;
    const auto built = require(build(options));
    EXPECT_TRUE(built.partitioned.wholly);
    EXPECT_EQ(kernelCalls(built), io == ProgramIo::Float ? 2u : 0u) << programIoName(io);
    const auto name = folder / fmt::format("{}.pte", programIoName(io));
    ASSERT_TRUE(writeOutput(built, name).ok());
    RunOptions run;
    run.file = name;
    run.dequantize = true;
    const auto ran = require(runFile(run, in));
    results.push_back(ran.outputs[0].second);
    EXPECT_EQ(results.back().dtype(), DType::Float32);
    for (int64_t i = 0; i < results.back().numElements(); ++i)
      EXPECT_EQ(results.back().realAt(i), results.front().realAt(i)) << programIoName(io);
  }
}

TEST(ProgramCodes, InvalidCodesAreIgnored) {
  pte::Program program;
  pte::MethodBuilder forward(program, "forward");
  forward.output(forward.input(pte::ScalarType::Int8, {1, 4}));
  ASSERT_TRUE(forward.finish().ok());
  pte::MethodBuilder scale(program, "input0_scale");
  scale.output(scale.real(-1));
  ASSERT_TRUE(scale.finish().ok());
  pte::MethodBuilder zero(program, "input0_zp");
  zero.output(zero.text("none"));
  ASSERT_TRUE(zero.finish().ok());
  EXPECT_TRUE(codesOf(program).inputs[0].empty());
  program.methods[1].outputs = {99};
  EXPECT_TRUE(codesOf(program).inputs[0].empty());
  EXPECT_TRUE(isCodeMethod(program.methods[2]));
  EXPECT_FALSE(isCodeMethod(program.methods[0]));
}

}  // namespace
}  // namespace carina::pipeline
