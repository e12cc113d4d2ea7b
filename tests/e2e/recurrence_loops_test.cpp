// SPDX-License-Identifier: Apache-2.0
// Recurrent layers over many steps (models/recurrences.py) as loops: the program matches torch and equals the
// unrolled one bit for bit, and its size does not grow with the number of steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "aten/control_flow.hpp"
#include "aten/ops.hpp"
#include "base/file.hpp"
#include "base/npy.hpp"
#include "pipeline/inference_time.hpp"
#include "pipeline/methods.hpp"
#include "pipeline/part_turns.hpp"
#include "pipeline/run.hpp"
#include "pipeline/verify.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

std::filesystem::path dataFile(const std::string& file) {
  return test::dataDir() / "recurrences" / file;
}

Options optionsFor(const std::string& network, const std::string& target) {
  Options options;
  options.model = dataFile(network + ".pt2");
  options.target = target;
  if (target != "cpu") options.calibration = dataFile(network + ".npz");
  options.unroll = 99;  // keeps loops, whatever they cost
  return options;
}

NamedTensors arraysOf(const std::string& network) {
  return require(readNpz(dataFile(network + ".npz")));
}

NamedTensors inputsOf(const NamedTensors& arrays) {
  return {{"in0", *findTensor(arrays, "calib0")}};
}

NamedTensors outputsOf(const pte::Program& program, const std::string& method, const NamedTensors& arrays) {
  test::TempDir folder;
  RunOptions options;
  options.file = folder / "program.pte";
  options.method = method;
  require(writeFile(options.file, require(pte::writeProgram(program))));
  return require(runFile(options, inputsOf(arrays))).outputs;
}

NamedTensors outputsOf(const Build& built, const NamedTensors& arrays) {
  test::TempDir folder;
  RunOptions options;
  options.file = folder / "program.pte";
  require(writeOutput(built, options.file));
  return require(runFile(options, inputsOf(arrays))).outputs;
}

/// Signal-to-noise ratio of an output against torch's, in dB.
double signalToNoise(const Tensor& found, const Tensor& expected) {
  CARINA_CHECK(found.numElements() == expected.numElements(), "torch computed this output");
  double error = 0, signal = 0;
  for (int64_t k = 0; k < expected.numElements(); ++k) {
    error += std::pow(expected.realAt(k) - found.realAt(k), 2);
    signal += std::pow(expected.realAt(k), 2);
  }
  return 10 * std::log10(signal / std::max(error, 1e-30));
}

int loopsIn(const ir::Graph& graph) {
  int loops = 0;
  aten::forEachNode(graph, [&](const ir::Node& node) { loops += node.is(aten::scanDef()); });
  return loops;
}

/// Loops of the program, and of the command streams in it.
int loopsIn(const Build& built) {
  int loops = loopsIn(built.graph());
  for (const compiler::CompiledProgram& part : built.compiled) {
    loops += static_cast<int>(std::count_if(part.branches.begin(), part.branches.end(),
                                            [](const auto& branch) { return branch.isLoop; }));
  }
  return loops;
}

class RecurrenceLoops : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(RecurrenceLoops, MatchTorchAndEqualTheUnrolledProgram) {
  const auto& [network, target] = GetParam();
  const NamedTensors arrays = arraysOf(network);
  Options options = optionsFor(network, target);
  const auto looped = require(build(options));
  EXPECT_GE(loopsIn(looped), 1);
  // An Ethos-U85 loops by itself.
  const bool inStream = options.target.starts_with("ethos-u85");
  EXPECT_EQ(loopsIn(looped.graph()) == 0, inStream);
  const NamedTensors outputs = outputsOf(looped, arrays);
  const bool cpu = options.target == "cpu";
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_GT(signalToNoise(outputs[i].second, *findTensor(arrays, fmt::format("expected{}", i))),
              cpu ? 100 : 28)
        << outputs[i].first;

  const auto samples = require(verificationSamples(looped, inputsOf(arrays)));
  const auto verified = require(verify(looped, samples));
  EXPECT_TRUE(verified.ok());
  EXPECT_EQ(verified.delegateMismatches, 0);

  if (cpu) return;
  options.unroll = 1000;
  const auto unrolled = require(build(options));
  EXPECT_EQ(loopsIn(unrolled), 0);
  const NamedTensors same = outputsOf(unrolled, arrays);
  ASSERT_EQ(same.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(outputs[i].second.bytes(), same[i].second.bytes())) << outputs[i].first;
}

INSTANTIATE_TEST_SUITE_P(
    Networks, RecurrenceLoops,
    testing::Combine(testing::Values("gru", "lstm_deep", "lstm_projected", "gru_both_ways", "rnn_batch_first",
                                     "relu_batch_first"),
                     testing::Values("cpu", "ethos-u55-128", "ethos-u65-512", "ethos-u85-256")),
    [](const auto& instance) {
      std::string name = fmt::format("{}_{}", std::get<0>(instance.param), std::get<1>(instance.param));
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

/// Recurrent layers that PyTorch's quantizer left between a dequantize and a quantize node
/// (models/qdq_forms.py).
class QuantizedRecurrenceLoops : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(QuantizedRecurrenceLoops, EqualTheUnrolledProgram) {
  const auto& [network, target] = GetParam();
  const std::filesystem::path folder = test::dataDir() / "qdq";
  const auto arrays = require(readNpz(folder / fmt::format("{}.npz", network)));
  Options options;
  options.model = folder / fmt::format("{}.pt2", network);
  options.target = target;
  options.unroll = 99;
  const auto looped = require(build(options));
  EXPECT_GE(loopsIn(looped), 1);
  const bool inStream = options.target.starts_with("ethos-u85");
  EXPECT_EQ(looped.partitioned.wholly, inStream);
  const NamedTensors outputs = outputsOf(looped, arrays);
  const auto samples = require(verificationSamples(looped, inputsOf(arrays)));
  const auto verified = require(verify(looped, samples));
  EXPECT_TRUE(verified.ok());
  options.unroll = 1000;
  const auto unrolled = require(build(options));
  EXPECT_EQ(loopsIn(unrolled), 0);
  EXPECT_TRUE(unrolled.partitioned.wholly);
  const NamedTensors same = outputsOf(unrolled, arrays);
  ASSERT_EQ(same.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(outputs[i].second.bytes(), same[i].second.bytes())) << outputs[i].first;
}

INSTANTIATE_TEST_SUITE_P(Networks, QuantizedRecurrenceLoops,
                         testing::Combine(testing::Values("gru_long", "gru_long_state", "gru_long_int16",
                                                          "lstm_long_parameters", "lstm_long_both_ways"),
                                          testing::Values("ethos-u55-128", "ethos-u85-256")),
                         [](const auto& instance) {
                           std::string name =
                               fmt::format("{}_{}", std::get<0>(instance.param), std::get<1>(instance.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(RecurrenceLoopsOfManyTurns, AreComparedWithTheSimulationInEachIteration) {
  const auto built = require(build(optionsFor("long_noise", "ethos-u65-512")));
  const auto samples = require(verificationSamples(built, inputsOf(arraysOf("long_noise"))));
  const auto verified = require(verify(built, samples));
  EXPECT_TRUE(verified.ok());
  EXPECT_FALSE(verified.drift.empty());
  for (const DriftResult& value : verified.drift) EXPECT_LE(value.worstLsb, 2) << value.value;
}

TEST(RecurrenceLoopsOfAnEthosN, CallTheirPartInEachIteration) {
  for (const char* network : {"gru", "lstm_projected"}) {
    const NamedTensors arrays = arraysOf(network);
    Options options = optionsFor(network, "ethos-n78-4tops-4ple");
    const auto looped = require(build(options));
    EXPECT_EQ(loopsIn(looped.graph()), 1);
    const NamedTensors outputs = outputsOf(looped, arrays);
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_GT(signalToNoise(outputs[i].second, *findTensor(arrays, fmt::format("expected{}", i))), 25)
          << outputs[i].first;
    const auto samples = require(verificationSamples(looped, inputsOf(arrays)));
    const auto verified = require(verify(looped, samples));
    EXPECT_TRUE(verified.ok());
    options.unroll = 1000;
    const auto unrolled = require(build(options));
    EXPECT_EQ(loopsIn(unrolled.graph()), 0);
    const auto bytes = require(programBytes(looped)), straight = require(programBytes(unrolled));
    EXPECT_LT(bytes, straight / 3);
  }
}

/// A method with a loop in its command stream and one without: each computes what it computes alone.
TEST(RecurrenceLoopsOfMethods, EqualThoseOfEachMethodAlone) {
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    Options options = optionsFor("gru", target);
    options.unroll = 99;
    const auto both =
        require(buildMethods(options, std::vector<MethodSource>{{"long", options.model, options.calibration},
                                                                {"short", optionsFor("short", target).model,
                                                                 optionsFor("short", target).calibration}}));
    EXPECT_EQ(loopsIn(both.methods[0]), 1);
    EXPECT_EQ(loopsIn(both.methods[1]), 0);
    const auto alone = require(build(options));
    const NamedTensors arrays = arraysOf("gru");
    const NamedTensors outputs = outputsOf(both.program, "long", arrays), same = outputsOf(alone, arrays);
    ASSERT_EQ(outputs.size(), same.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(outputs[i].second.bytes(), same[i].second.bytes())) << target;
  }
}

TEST(RecurrenceLoopsOf16Bits, EqualTheUnrolledProgram) {
  const NamedTensors arrays = arraysOf("gru");
  Options options = optionsFor("gru", "ethos-u85-256");
  options.quantization = Quantization::Int16x8;
  const auto looped = require(build(options));
  options.unroll = 120;
  const auto unrolled = require(build(options));
  EXPECT_EQ(loopsIn(unrolled), 0);
  const NamedTensors outputs = outputsOf(looped, arrays), same = outputsOf(unrolled, arrays);
  EXPECT_GT(signalToNoise(outputs[0].second, *findTensor(arrays, "expected0")), 50);
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(outputs[i].second.bytes(), same[i].second.bytes())) << outputs[i].first;
}

TEST(RecurrenceLoopsChosen, ByTheNumberOfSteps) {
  const auto few = require(build(optionsFor("short", "ethos-u55-128")));
  EXPECT_EQ(loopsIn(few.graph()), 0);
  Options options = optionsFor("short", "ethos-u55-128");
  options.unroll = 0;
  const auto asked = require(build(options));
  EXPECT_EQ(loopsIn(asked.graph()), 1);
  const NamedTensors arrays = arraysOf("short");
  EXPECT_GT(signalToNoise(outputsOf(asked, arrays)[0].second, *findTensor(arrays, "expected0")), 28);
}

/// Half the time is worth twice the bytes: a U55 program calls its NPU in every iteration, a U85 loops in the
/// command stream.
TEST(RecurrenceLoopsChosen, ByTheCostOfThePrograms) {
  const auto built = [](const char* target, std::optional<int64_t> unroll, compiler::Optimize optimize) {
    Options options = optionsFor("gru", target);
    options.unroll = unroll;
    options.optimize = optimize;
    return require(build(options));
  };
  const auto faster = compiler::Optimize::Performance, smaller = compiler::Optimize::Size;
  const auto bytesOf = [](const Build& build) { return *programBytes(build); };
  const Build loops = built("ethos-u55-128", 99, faster), straight = built("ethos-u55-128", 120, faster),
              chosen = built("ethos-u55-128", std::nullopt, faster);
  const auto timeOf = [](const Build& build) { return inferenceOf(build, "")->cycles(); };
  ASSERT_LT(timeOf(straight) * 3, timeOf(loops));
  EXPECT_LT(bytesOf(loops) * 3, bytesOf(straight));
  EXPECT_EQ(bytesOf(chosen), bytesOf(straight));
  EXPECT_EQ(loopsIn(chosen.graph()), 0);
  EXPECT_EQ(loopsIn(built("ethos-u55-128", std::nullopt, smaller).graph()), 1);
  const Build inStream = built("ethos-u85-256", std::nullopt, faster);
  ASSERT_EQ(inStream.compiled.size(), 1u);
  EXPECT_FALSE(inStream.compiled[0].branches.empty());
  const NamedTensors arrays = arraysOf("gru");
  const NamedTensors outputs = outputsOf(chosen, arrays), same = outputsOf(loops, arrays);
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(outputs[i].second.bytes(), same[i].second.bytes())) << outputs[i].first;
}

enum class Codes { Ours, OfTheNetwork };

/// A GRU over `steps` steps, compiled with samples of noise.
Result<Build> gruOver(int64_t steps, const std::string& target = "ethos-u55-128", Codes codes = Codes::Ours) {
  const auto filled = [](const Shape& shape) {
    Tensor tensor = Tensor::zeros(DType::Float32, shape);
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      tensor.mutableAs<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 7 - 3) / 4;
    return tensor;
  };
  ir::Graph graph;
  ir::Value* x = graph.addInput({DType::Float32, {steps, 1, 4}}, "x");
  ir::Builder b(graph);
  std::vector<ir::Value*> weights;
  for (const Shape& shape : {Shape{12, 4}, Shape{12, 4}, Shape{12}, Shape{12}})
    weights.push_back(b.constant(filled(shape)));
  ir::Value* state = b.constant(Tensor::zeros(DType::Float32, {1, 1, 4}));
  const auto rounded = [&](ir::Value* value) {
    if (codes == Codes::Ours) return value;
    value = aten::QuantizePerTensor::create(b, value, 1.0 / 128, int64_t{0}, int64_t{-128}, int64_t{127},
                                            DType::Int8)
                .output();
    return aten::DequantizePerTensor::create(b, value, 1.0 / 128, int64_t{0}, int64_t{-128}, int64_t{127},
                                             DType::Int8, std::nullopt)
        .output();
  };
  graph.setOutputs({rounded(
      aten::GruInput::create(b, rounded(x), state, weights, true, int64_t{1}, 0.0, false, false, false)
          .output0())});
  Options options;
  options.target = target;
  options.madeUpSamples = true;
  std::vector<StageTime> times;
  CARINA_TRY(Front front, frontOf(options, std::move(graph), times));
  return buildFrom(std::move(front), options, std::move(times));
}

TEST(RecurrenceLoopsGrow, NeitherInCommandsNorInConstantsNorInTheArena) {
  const auto some = require(gruOver(200)), many = require(gruOver(2000));
  ASSERT_EQ(some.compiled.size(), 1u);
  ASSERT_EQ(many.compiled.size(), 1u);
  // Different samples give different scales: a register more or less is set.
  const auto one = static_cast<double>(some.compiled[0].commands.size()),
             other = static_cast<double>(many.compiled[0].commands.size());
  EXPECT_NEAR(one, other, 0.05 * one);
  EXPECT_EQ(some.compiled[0].constants.size(), many.compiled[0].constants.size());
  EXPECT_EQ(some.compiled[0].arenaBytes, many.compiled[0].arenaBytes);
  EXPECT_EQ(iterationsOfParts(some.graph()), (std::vector<int64_t>{8}));
  EXPECT_EQ(iterationsOfParts(many.graph()), (std::vector<int64_t>{80}));
}

TEST(RecurrenceLoopsGrow, NotInPrequantizedNetworks) {
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    SCOPED_TRACE(target);
    const auto some = require(gruOver(200, target, Codes::OfTheNetwork)),
               many = require(gruOver(1000, target, Codes::OfTheNetwork));
    ASSERT_EQ(some.compiled.size(), many.compiled.size());
    for (size_t i = 0; i < some.compiled.size(); ++i) {
      const auto one = static_cast<double>(some.compiled[i].commands.size());
      EXPECT_NEAR(one, static_cast<double>(many.compiled[i].commands.size()), 0.05 * one);
      EXPECT_NEAR(static_cast<double>(some.compiled[i].constants.size()),
                  static_cast<double>(many.compiled[i].constants.size()), 256);
    }
  }
}

TEST(RecurrenceLoopsGrow, InACommandStreamOnlyByInputsAndOutputs) {
  const auto some = require(gruOver(200, "ethos-u85-256")), many = require(gruOver(2000, "ethos-u85-256"));
  ASSERT_EQ(some.compiled.size(), 1u);
  ASSERT_EQ(many.compiled.size(), 1u);
  const compiler::CompiledProgram &less = some.compiled[0], &more = many.compiled[0];
  const auto one = static_cast<double>(less.commands.size()),
             other = static_cast<double>(more.commands.size());
  EXPECT_NEAR(one, other, 0.05 * one);
  EXPECT_NEAR(static_cast<double>(less.constants.size()), static_cast<double>(more.constants.size()), 256);
  ASSERT_EQ(less.branches.size(), 1u);
  EXPECT_EQ(less.branches[0].turns, 8);
  EXPECT_EQ(more.branches[0].turns, 80);
  EXPECT_GE(more.cycles, 80 * more.branches[0].first);
  EXPECT_LE(more.cycles, 80 * (more.branches[0].first + more.branches[0].second) + less.cycles);
  // 4 values in and 4 out; rows are aliases of them.
  EXPECT_LE(more.arenaBytes - less.arenaBytes, 1800 * 8 + 64);
  EXPECT_TRUE(many.partitioned.wholly);
}

TEST(RecurrenceLoopsTime, CountsTheIterations) {
  const auto looped = require(build(optionsFor("gru", "ethos-u55-128")));
  EXPECT_EQ(iterationsOfParts(looped.graph()), (std::vector<int64_t>{5, 1})) << "24 steps each, and the head";
  EXPECT_EQ(npuCycles(looped), 5 * looped.compiled[0].cycles + looped.compiled[1].cycles);
  const auto time = inferenceOf(looped, "");
  ASSERT_TRUE(time.has_value());
  EXPECT_EQ(time->npuCycles, npuCycles(looped));
  EXPECT_FALSE(time->branches) << "the iterations are known";
  const auto reads = std::find_if(time->kernels.begin(), time->kernels.end(), [](const KernelTime& kernel) {
    return kernel.kernel == "aten::index_select.out";
  });
  ASSERT_NE(reads, time->kernels.end());
  EXPECT_EQ(reads->calls, 5u);
}

}  // namespace
}  // namespace carina::pipeline
