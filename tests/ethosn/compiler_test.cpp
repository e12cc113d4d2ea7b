// SPDX-License-Identifier: Apache-2.0
// Compares compiled networks, run on the model, with the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>

#include "ethosn/compiler/compile.hpp"
#include "ethosn/model/run.hpp"
#include "ethosn/random_network.hpp"
#include "ethosn/reference.hpp"
#include "support/child_process.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::ethosn::test {
namespace {

struct Difference {
  size_t count = 0, first = 0;  // elements
  int largest = 0;
};

Difference compare(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, bool isSigned) {
  Difference out;
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const auto value = [isSigned](uint8_t byte) { return isSigned ? static_cast<int8_t>(byte) : int{byte}; };
    const int distance = std::abs(value(a[i]) - value(b[i]));
    if (distance != 0 && out.count++ == 0) out.first = i;
    out.largest = std::max(out.largest, distance);
  }
  return out;
}

/// CARINA_ETHOSN_PARSER names a program that is called as `PROGRAM FILE` and exits with 0 if it accepts the
/// compiled network in FILE.
void expectParses(const CompiledNetwork& network) {
  const char* parser = std::getenv("CARINA_ETHOSN_PARSER");
  if (parser == nullptr) return;
  const carina::test::TempDir dir;
  const std::vector<uint8_t> bytes = writeCompiledNetwork(network);
  std::ofstream(dir / "network.encn", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const carina::test::ChildOutcome outcome =
      carina::test::runChild({parser, (dir / "network.encn").string()});
  EXPECT_EQ(outcome.status, 0) << outcome.out;
}

/// Compiles, runs and compares; outputs may differ by `tolerance`.
void expectRuns(NetworkBuilder& builder, const Target& target, int tolerance = 0, bool varied = true) {
  const Network& network = builder.network();
  const CompiledNetwork compiled = require(compileNetwork(network, target));
  expectParses(compiled);
  const auto inputs = builder.randomInputs();
  std::vector<ByteSpan> spans;
  spans.reserve(inputs.size());
  for (const std::vector<uint8_t>& input : inputs) spans.push_back(std::as_bytes(std::span(input)));
  const auto expected = computeReference(network, inputs);
  for (const std::vector<uint8_t>& output : expected) {
    // A network whose outputs are all equal would prove nothing.
    const std::set<uint8_t> values(output.begin(), output.end());
    if (varied) {
      EXPECT_GT(values.size(), output.size() > 500 ? 20U : 3U);
    }
  }
  for (uint64_t order : {0, 5}) {
    RunOptions options;
    options.order = order;
    const RunResult run = require(runNetwork(compiled, spans, target, options));
    for (const Finding& finding : run.findings) ADD_FAILURE() << finding.str();
    ASSERT_EQ(run.outputs.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool isSigned = network.tensors[static_cast<size_t>(network.outputs[i])].type == DataType::S8;
      const Difference difference = compare(run.outputs[i], expected[i], isSigned);
      EXPECT_LE(difference.largest, tolerance)
          << "output " << i << ": " << difference.count << " of " << expected[i].size()
          << " differ, the first at " << difference.first;
    }
  }
}

using Build = std::function<void(NetworkBuilder&)>;

void expectOnAll(const Build& build, int tolerance = 0, int64_t bytesPerIg = 0) {
  for (const Variant& variant : allVariants()) {
    if (!variant.kernels) continue;
    const Target target = *makeTarget(variant, bytesPerIg * variant.igs());
    for (DataType type : {DataType::U8, DataType::S8}) {
      SCOPED_TRACE(fmt::format("{} {}", variant.name, dataTypeName(type)));
      NetworkBuilder builder(type, 11);
      build(builder);
      expectRuns(builder, target, tolerance);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(EthosNCompiler, Convolutions) {
  for (uint32_t size : {1U, 2U, 3U, 5U, 7U, 9U}) {
    SCOPED_TRACE(size);
    const uint32_t before = (size - 1) / 2, after = size / 2;
    expectOnAll([&](NetworkBuilder& b) {
      b.output(b.convolution(b.input(17, 19, 20), size, size, 24, 1, {before, after, before, after}));
    });
  }
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(11, 30, 5), 1, 3, 40)); });
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(16, 16, 3), 3, 3, 70, 1, kOne)); });
}

TEST(EthosNCompiler, StridedConvolutions) {
  expectOnAll([](NetworkBuilder& b) {
    b.output(b.convolution(b.input(18, 20, 20), 3, 3, 24, 2, {0, 1, 0, 1}));
  });
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(17, 21, 33), 3, 3, 16, 2, kOne)); });
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(16, 16, 16), 1, 1, 16, 2)); });
  expectOnAll([](NetworkBuilder& b) {
    b.output(b.convolution(b.input(22, 22, 3), 7, 7, 16, 2, {3, 3, 3, 3}));
  });
  expectOnAll([](NetworkBuilder& b) { b.output(b.depthwise(b.input(18, 20, 40), 3, 2, {0, 1, 0, 1})); });
  expectOnAll([](NetworkBuilder& b) { b.output(b.depthwise(b.input(15, 15, 16), 5, 2, {2, 2, 2, 2})); });
}

TEST(EthosNCompiler, DepthwiseAndFullyConnected) {
  expectOnAll([](NetworkBuilder& b) { b.output(b.depthwise(b.input(18, 20, 40), 3, 1, kOne)); });
  expectOnAll([](NetworkBuilder& b) { b.output(b.depthwise(b.input(9, 9, 7), 5, 1, {2, 2, 2, 2})); });
  expectOnAll([](NetworkBuilder& b) { b.output(b.fullyConnected(b.input(1, 1, 100), 40)); });
  expectOnAll([](NetworkBuilder& b) { b.output(b.fullyConnected(b.input(1, 1, 1500), 33)); });
  expectOnAll([](NetworkBuilder& b) { b.output(b.fullyConnected(b.input(1, 1, 2048), 200)); });
  // More inputs than a 1x1 convolution can hold in SRAM.
  expectOnAll([](NetworkBuilder& b) { b.output(b.fullyConnected(b.input(1, 1, 1500), 33)); }, 0, 32 * 1024);
}

TEST(EthosNCompiler, Pooling) {
  const auto pool = [](uint32_t h, uint32_t w, PoolingType type, uint32_t size, uint32_t stride,
                       Padding pad) {
    expectOnAll([=](NetworkBuilder& b) { b.output(b.pooling(b.input(h, w, 40), type, size, stride, pad)); });
  };
  pool(18, 20, PoolingType::Max, 2, 2, {});
  pool(17, 19, PoolingType::Max, 2, 2, {0, 1, 0, 1});
  pool(17, 19, PoolingType::Max, 3, 2, {});
  pool(18, 20, PoolingType::Max, 3, 2, {0, 1, 0, 1});
  pool(18, 20, PoolingType::Max, 1, 2, {});
  pool(18, 20, PoolingType::Max, 3, 1, kOne);
  pool(18, 20, PoolingType::Max, 5, 1, {});
  pool(18, 20, PoolingType::Average, 3, 1, kOne);
  pool(7, 7, PoolingType::Average, 7, 1, {});
  pool(8, 8, PoolingType::Average, 8, 1, {});
  for (uint32_t size : {7U, 8U}) {
    expectOnAll([=](NetworkBuilder& b) { b.output(b.unary(Operator::MeanXy, b.input(size, size, 200))); });
    expectOnAll([=](NetworkBuilder& b) {
      const int32_t mean = b.unary(Operator::MeanXy, b.convolution(b.input(size, size, 90), 1, 1, 300));
      b.output(b.fullyConnected(mean, 50));
    });
  }
}

TEST(EthosNCompiler, Elementwise) {
  expectOnAll([](NetworkBuilder& b) {
    const int32_t x = b.input(18, 20, 40), y = b.input(18, 20, 40);
    b.output(b.binary(Operator::Addition, x, y, 0.05F, 7));
  });
  expectOnAll([](NetworkBuilder& b) {
    const int32_t x = b.input(18, 20, 40), y = b.input(18, 20, 40, 0.07F, 30);
    b.output(b.binary(Operator::Addition, x, y, 0.09F, 9));
  });
  expectOnAll([](NetworkBuilder& b) {
    const int32_t x = b.input(18, 20, 40), y = b.input(18, 20, 40, 0.07F, 30);
    b.output(b.binary(Operator::Multiplication, x, y, 0.9F, 9));
  });
  expectOnAll([](NetworkBuilder& b) { b.output(b.relu(b.input(18, 20, 40), 20, 200)); });
  expectOnAll([](NetworkBuilder& b) { b.output(b.requantize(b.input(18, 20, 40), 0.08F, 99)); });
  expectOnAll([](NetworkBuilder& b) { b.output(b.unary(Operator::StandalonePadding, b.input(18, 20, 40))); });
  expectOnAll(
      [](NetworkBuilder& b) { b.output(b.unary(Operator::LeakyRelu, b.input(18, 20, 40, 0.05F, 100))); });
  expectOnAll(
      [](NetworkBuilder& b) { b.output(b.unary(Operator::Sigmoid, b.input(18, 20, 40, 0.05F, 128))); }, 1);
  expectOnAll([](NetworkBuilder& b) { b.output(b.unary(Operator::Tanh, b.input(18, 20, 40, 0.03F, 120))); },
              1);
}

// 0.09F / 0.06F is 1.5 in single precision but slightly less in double precision, which would truncate to the
// next smaller 16-bit multiplier.
TEST(EthosNCompiler, LeakyReluRatiosHaveSinglePrecision) {
  NetworkBuilder b(DataType::S8, 1);
  b.output(b.unary(Operator::LeakyRelu, b.input(8, 8, 16, 0.09F, 100)));
  const auto compiled =
      require(compileNetwork(b.network(), *makeTarget(**findVariant("ethos-n78-4tops-4ple"))));
  const auto stream = require(readCommandStream(*commandStreamBytes(compiled)));
  const Command& last = stream.queue(Queue::Ple).back();
  ASSERT_TRUE(std::holds_alternative<StartPleStripe>(last));
  constexpr uint32_t kMultiplier = 0xc000, kShift = 15;
  EXPECT_EQ(std::get<StartPleStripe>(last).scratch[2], kShift << 16 | kMultiplier);
}

TEST(EthosNCompiler, ReshapesAndConcatenations) {
  expectOnAll([](NetworkBuilder& b) { b.output(b.reshape(b.input(18, 20, 40), {1, 9, 10, 160})); });
  expectOnAll([](NetworkBuilder& b) {
    const int32_t made = b.convolution(b.input(16, 16, 16), 1, 1, 24);
    b.output(b.convolution(b.reshape(made, {1, 8, 32, 24}), 1, 1, 16));
  });
  expectOnAll([](NetworkBuilder& b) {
    const int32_t x = b.input(18, 20, 32), y = b.input(18, 20, 20, 0.04F, 60), z = b.input(18, 20, 16);
    b.output(b.concatenation({x, z, y}, 3));
  });
  expectOnAll([](NetworkBuilder& b) {
    const int32_t x = b.input(18, 20, 20), y = b.input(5, 20, 20, 0.04F, 60);
    b.output(b.concatenation({x, y}, 1));
  });
  expectOnAll([](NetworkBuilder& b) {
    const int32_t x = b.input(18, 20, 20), y = b.input(18, 3, 20);
    b.output(b.concatenation({x, y}, 2));
  });
}

TEST(EthosNCompiler, Transposes) {
  const std::array<std::array<uint32_t, 4>, 6> orders = {
      {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}}};
  for (const auto& order : orders) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(order, ",")));
    Operation op;
    op.op = Operator::Transpose;
    op.permutation = order;
    expectOnAll([&op](NetworkBuilder& b) { b.output(b.add(op, {b.input(18, 5, 20)})); });
    expectOnAll([&op](NetworkBuilder& b) {
      const int32_t made = b.convolution(b.input(9, 24, 16), 1, 1, 40);
      b.output(b.convolution(b.add(op, {made}), 1, 1, 16));
    });
    expectOnAll([&op](NetworkBuilder& b) { b.output(b.add(op, {b.input(40, 40, 100)})); });
  }
}

TEST(EthosNCompiler, TransposeConvolutions) {
  for (const auto& [size, pad] : {std::pair(2U, 0U), {3U, 0U}, {3U, 1U}, {5U, 2U}, {7U, 3U}}) {
    SCOPED_TRACE(size);
    expectOnAll([size = size, pad = pad](NetworkBuilder& b) {
      b.output(b.transposeConvolution(b.input(9, 11, 20), size, size, 24, {pad, pad, pad, pad}));
    });
  }
  expectOnAll([](NetworkBuilder& b) {
    b.output(b.transposeConvolution(b.input(10, 9, 20), 3, 3, 24, {1, 0, 1, 0}));
  });
  // Filters that are split into pieces.
  expectOnAll([](NetworkBuilder& b) {
    b.output(b.transposeConvolution(b.input(10, 9, 6), 9, 9, 8, {4, 3, 4, 3}));
  });
}

TEST(EthosNCompiler, Upsampling) {
  for (ResizeAlgorithm algorithm : {ResizeAlgorithm::NearestNeighbour, ResizeAlgorithm::Bilinear}) {
    expectOnAll([=](NetworkBuilder& b) { b.output(b.resize(b.input(9, 11, 20), algorithm, 18, 22)); });
    expectOnAll([=](NetworkBuilder& b) { b.output(b.resize(b.input(9, 11, 20), algorithm, 17, 21)); });
  }
  expectOnAll([](NetworkBuilder& b) { b.output(b.unary(Operator::DepthToSpace, b.input(9, 11, 40))); });
}

TEST(EthosNCompiler, UpsamplingInStripes) {
  const auto small = [](const Build& build) { expectOnAll(build, 0, 32 * 1024); };
  small([](NetworkBuilder& b) {
    b.output(b.transposeConvolution(b.input(64, 48, 40), 3, 3, 24, {1, 1, 1, 1}));
  });
  small([](NetworkBuilder& b) { b.output(b.transposeConvolution(b.input(61, 48, 40), 2, 2, 24)); });
  for (ResizeAlgorithm algorithm : {ResizeAlgorithm::NearestNeighbour, ResizeAlgorithm::Bilinear}) {
    small([=](NetworkBuilder& b) { b.output(b.resize(b.input(61, 60, 64), algorithm, 122, 120)); });
    small([=](NetworkBuilder& b) { b.output(b.resize(b.input(61, 60, 64), algorithm, 121, 119)); });
  }
}

TEST(EthosNCompiler, SeamsInsideBricks) {
  expectOnAll([](NetworkBuilder& b) {
    const int32_t x = b.input(18, 20, 20), y = b.input(18, 20, 5, 0.04F, 60), z = b.input(18, 20, 33);
    b.output(b.concatenation({x, y, z}, 3));
  });
  expectOnAll([](NetworkBuilder& b) {
    const auto parts = b.split(b.convolution(b.input(18, 20, 20), 1, 1, 50), 3, {7, 20, 23});
    b.output(b.convolution(parts[1], 3, 3, 16, 1, kOne));
    b.output(parts[0]);
    b.output(parts[2]);
  });
  expectOnAll([](NetworkBuilder& b) {
    const auto parts = b.split(b.input(18, 20, 20), 3, {7, 13});
    b.output(parts[1]);
    b.output(b.relu(parts[0], 20, 200));
  });
  expectOnAll([](NetworkBuilder& b) {
    const auto parts = b.split(b.convolution(b.input(18, 20, 20), 1, 1, 50), 1, {7, 5, 6});
    b.output(b.convolution(parts[1], 1, 1, 16));
    b.output(parts[2]);
  });
}

// If all feature maps fit, only inputs, outputs and weights are transferred.
TEST(EthosNCompiler, FeatureMapsStayInSram) {
  NetworkBuilder b(DataType::U8, 3);
  int32_t made = b.pooling(b.convolution(b.input(16, 18, 20), 3, 3, 32, 1, kOne), PoolingType::Max, 2, 2);
  made = b.convolution(made, 3, 3, 32, 1, kOne);
  const int32_t left = b.convolution(made, 1, 1, 32), right = b.depthwise(made, 3, 1, kOne);
  b.output(b.binary(Operator::Addition, left, right, 0.9F, 5));
  const Target target = *makeTarget(**findVariant("ethos-n78-4tops-4ple"));
  const CompiledNetwork compiled = require(compileNetwork(b.network(), target));
  EXPECT_TRUE(compiled.intermediates.empty());
  expectRuns(b, target);
}

size_t loadsOfWeights(const CompiledNetwork& network) {
  const CommandStream stream = *readCommandStream(*commandStreamBytes(network));
  const std::vector<Command>& loads = stream.queues[static_cast<size_t>(Queue::DmaRead)];
  return static_cast<size_t>(std::count_if(loads.begin(), loads.end(), [](const Command& command) {
    return commandType(command) == CommandType::LoadWeightStripe;
  }));
}

// Transfers take a minimum time: short weights are loaded together with those of an earlier pass.
TEST(EthosNCompiler, ShortWeightsAreLoadedTogether) {
  const Target target = *makeTarget(**findVariant("ethos-n78-4tops-4ple"));
  NetworkBuilder b(DataType::S8, 3);
  int32_t made = b.input(16, 16, 16);
  for (int i = 0; i < 5; ++i) made = b.convolution(made, 1, 1, 32);
  b.output(made);
  const CompiledNetwork compiled = require(compileNetwork(b.network(), target));
  EXPECT_EQ(loadsOfWeights(compiled), 1U);
  expectRuns(b, target);
}

// Feature maps that do not fit are passed on stripe by stripe: the strided convolution's four sub-maps, the
// feature map after it, and the sum's.
TEST(EthosNCompiler, LargeFeatureMapsArePassedOnInStripes) {
  const Build build = [](NetworkBuilder& b) {
    const int32_t strided = b.convolution(b.input(96, 96, 16), 3, 3, 32, 2, kOne);
    const int32_t expanded = b.convolution(strided, 1, 1, 64);
    const int32_t made = b.convolution(b.depthwise(expanded, 3, 1, kOne), 1, 1, 32);
    b.output(b.binary(Operator::Addition, made, strided, 0.9F, 5));
  };
  expectOnAll(build, 0, 32 * 1024);
  NetworkBuilder b(DataType::U8, 3);
  build(b);
  const CompiledNetwork compiled =
      require(compileNetwork(b.network(), *makeTarget(**findVariant("ethos-n78-1tops-4ple"), 256 * 1024)));
  // The feature map that two passes read is in DRAM, and at most one of the other four.
  EXPECT_LE(compiled.intermediates.size(), 2U);
  // Stripes with more and with fewer rows than those of the preceding pass.
  expectOnAll(
      [](NetworkBuilder& n) {
        const int32_t large =
            n.pooling(n.convolution(n.input(96, 80, 24), 3, 3, 48, 1, kOne), PoolingType::Max, 2, 2);
        n.output(n.resize(n.convolution(large, 5, 5, 40, 1, {2, 2, 2, 2}), ResizeAlgorithm::NearestNeighbour,
                          96, 80));
      },
      0, 32 * 1024);
}

// The whole first feature map would fit in SRAM, but then the next two would go through DRAM.
TEST(EthosNCompiler, StreamsAFittingFeatureMapIfThatKeepsOthersInSram) {
  NetworkBuilder b(DataType::S8, 3);
  const int32_t strided = b.convolution(b.input(224, 224, 3), 3, 3, 32, 2, kOne);
  b.output(b.convolution(b.depthwise(strided, 3, 1, kOne), 1, 1, 16));
  const CompiledNetwork compiled =
      require(compileNetwork(b.network(), *makeTarget(**findVariant("ethos-n78-4tops-4ple"))));
  EXPECT_TRUE(compiled.intermediates.empty());
}

// A run reports the assumption about Winograd if the stream uses it.
TEST(EthosNCompiler, WinogradWhereItIsFaster) {
  const auto assumes = [](uint32_t size, uint32_t channels) {
    const Target target = *makeTarget(**findVariant("ethos-n78-4tops-4ple"));
    NetworkBuilder b(DataType::S8, 3);
    b.output(b.convolution(b.input(64, 64, channels), size, size, channels));
    const CompiledNetwork compiled = require(compileNetwork(b.network(), target));
    const auto input = b.randomInputs();
    const ByteSpan bytes = std::as_bytes(std::span(input[0]));
    const RunResult run = require(runNetwork(compiled, {&bytes, 1}, target));
    const std::vector<Assumption>& all = run.assumptions;
    return std::count(all.begin(), all.end(), Assumption::Winograd) > 0;
  };
  EXPECT_TRUE(assumes(3, 128));
  EXPECT_TRUE(assumes(5, 64));
  EXPECT_FALSE(assumes(1, 128));
}

void expectRefused(const Build& build, const std::string& reason) {
  NetworkBuilder b(DataType::S8, 3);
  build(b);
  const Target target = *makeTarget(**findVariant("ethos-n78-4tops-4ple"));
  const std::string error = errorOf(compileNetwork(b.network(), target));
  EXPECT_NE(error.find(reason), std::string::npos) << error;
}

TEST(EthosNCompiler, LimitsAreErrors) {
  expectRefused(
      [](NetworkBuilder& b) {
        const int32_t x = b.input(8, 8, 16), y = b.input(8, 8, 16);
        b.output(b.binary(Operator::Addition, x, y, 1e-9F, 9));
      },
      "the PLE supports only ratios between");
  // Codes grow by a factor of 100 / 0.05, and the zero point adds to them.
  expectRefused(
      [](NetworkBuilder& b) {
        const int32_t x = b.requantize(b.input(8, 8, 16), 100, 120);
        b.output(b.binary(Operator::Addition, x, x, 0.05F, 9));
      },
      "exceed the 16 bits of the PLE");
  expectRefused(
      [](NetworkBuilder& b) {
        b.output(b.unary(Operator::LeakyRelu, b.requantize(b.input(8, 8, 16), 400, 120)));
      },
      "of leaky_relu lead to sums of");
  expectRefused([](NetworkBuilder& b) { b.output(b.relu(b.input(70000, 1, 1), 3, 100)); },
                "larger than an Ethos-N");
  expectRefused([](NetworkBuilder& b) { b.output(b.relu(b.input(8, 60000, 16), 3, 100)); }, "no stripe of");
  expectRefused([](NetworkBuilder& b) { b.output(b.convolution(b.input(16, 16, 16), 4, 4, 16)); },
                "Unsupported kernel size");
}

/// Runs CARINA_ETHOSN_RANDOM networks per variant, by default `seeds`.
void expectRandom(uint32_t steps, uint32_t seeds) {
  const char* more = std::getenv("CARINA_ETHOSN_RANDOM");
  const uint32_t count = more != nullptr ? static_cast<uint32_t>(std::atoi(more)) : seeds;
  for (const Variant& variant : allVariants()) {
    if (!variant.kernels) continue;
    uint32_t ran = 0;
    for (uint32_t seed = 0; ran < count && !::testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE(fmt::format("{} seed {}", variant.name, seed));
      std::optional<RandomNetwork> random = randomNetwork(variant, seed, steps);
      if (!random) continue;
      ++ran;
      expectRuns(random->builder, random->target, random->tolerance, false);
    }
  }
}

TEST(EthosNCompiler, RandomOperations) {
  expectRandom(1, 25);
}

TEST(EthosNCompiler, RandomChains) {
  expectRandom(6, 10);
}

// Feature maps wider than an MCE block, with so many channels that even a few full rows do not fit: stripes
// are split into columns, and their slots include the neighbouring columns that the filter reads.
TEST(EthosNCompiler, DeepFeatureMapsAreSplitIntoColumns) {
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(19, 51, 500), 3, 3, 40, 1, kOne)); }, 0,
              32 * 1024);
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(13, 300, 60), 7, 5, 24)); }, 0,
              32 * 1024);
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(14, 129, 300), 3, 3, 20, 2, kOne)); }, 0,
              32 * 1024);
  expectOnAll(
      [](NetworkBuilder& b) {
        const int32_t made = b.convolution(b.input(18, 260, 40), 9, 9, 20, 1, {4, 4, 4, 4});
        b.output(b.pooling(made, PoolingType::Max, 2, 2));
      },
      0, 32 * 1024);
}

// If a few rows of all input channels do not fit, the MCE accumulates over parts of the channels and adds the
// biases once. The last part is smaller and does not fill the banks.
TEST(EthosNCompiler, DeepInputsAreAccumulatedInParts) {
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(17, 15, 1100), 3, 3, 40, 1, kOne)); }, 0,
              32 * 1024);
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(19, 31, 500), 3, 3, 40, 2, kOne)); }, 0,
              32 * 1024);
  expectOnAll(
      [](NetworkBuilder& b) {
        const int32_t made = b.convolution(b.input(8, 16, 1500), 3, 3, 20, 1, kOne);
        b.output(b.pooling(made, PoolingType::Max, 2, 2));
      },
      0, 32 * 1024);
  // One stripe of channels with short weights, which are still loaded part by part.
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(20, 20, 209), 3, 3, 8, 2)); }, 0,
              32 * 1024);
  NetworkBuilder b(DataType::S8, 3);
  b.output(b.convolution(b.input(17, 15, 1100), 3, 3, 40, 1, kOne));
  const Target target = *makeTarget(**findVariant("ethos-n78-4tops-4ple"), 32 * 1024 * 16);
  const CompiledNetwork compiled = require(compileNetwork(b.network(), target));
  const CommandStream stream = *readCommandStream(*commandStreamBytes(compiled));
  const std::vector<Command>& mce = stream.queues[static_cast<size_t>(Queue::Mce)];
  EXPECT_TRUE(std::any_of(mce.begin(), mce.end(), [](const Command& command) {
    const auto* program = std::get_if<ProgramMceStripe>(&command);
    return program != nullptr && ce_control::kKeepAccumulators.in(program->ceControl) != 0;
  }));
}

// Larger than SRAM: split into rows, channels or both.
TEST(EthosNCompiler, StripesOfLargeFeatureMaps) {
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(113, 65, 40), 3, 3, 12, 1, kOne)); }, 0,
              32 * 1024);
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(40, 24, 64), 3, 3, 256, 1, kOne)); }, 0,
              32 * 1024);
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(64, 40, 64), 3, 3, 48)); }, 0,
              32 * 1024);
  expectOnAll([](NetworkBuilder& b) { b.output(b.convolution(b.input(113, 65, 40), 3, 3, 24, 2, kOne)); }, 0,
              32 * 1024);
  expectOnAll([](NetworkBuilder& b) { b.output(b.depthwise(b.input(96, 96, 96), 3, 1, kOne)); }, 0,
              32 * 1024);
  expectOnAll(
      [](NetworkBuilder& b) {
        b.output(b.depthwise(b.input(96, 96, 96), 3, 2, {0, 1, 0, 1}));
      },
      0, 32 * 1024);
  expectOnAll(
      [](NetworkBuilder& b) {
        b.output(b.pooling(b.input(96, 96, 64), PoolingType::Max, 3, 2, {0, 1, 0, 1}));
      },
      0, 32 * 1024);
  // After a convolution whose feature maps do not fit: even and odd sizes.
  expectOnAll(
      [](NetworkBuilder& b) {
        b.output(b.pooling(b.convolution(b.input(112, 112, 32), 3, 3, 64, 1, kOne), PoolingType::Max, 3, 2,
                           {0, 1, 0, 1}));
      },
      0, 32 * 1024);
  expectOnAll(
      [](NetworkBuilder& b) {
        b.output(b.pooling(b.convolution(b.input(147, 129, 24), 1, 1, 40), PoolingType::Max, 3, 2));
      },
      0, 32 * 1024);
  // One row of many pixels.
  expectOnAll(
      [](NetworkBuilder& b) {
        const int32_t x = b.input(1, 1083, 91), y = b.input(1, 600, 91, 0.04F, 60);
        b.output(b.concatenation({x, y}, 2));
      },
      0, 32 * 1024);
  expectOnAll([](NetworkBuilder& b) { b.output(b.pooling(b.input(96, 96, 64), PoolingType::Max, 2, 2)); }, 0,
              32 * 1024);
  expectOnAll([](NetworkBuilder& b) { b.output(b.relu(b.input(112, 112, 48), 20, 200)); }, 0, 32 * 1024);
  expectOnAll(
      [](NetworkBuilder& b) {
        const int32_t x = b.input(96, 96, 40), y = b.input(96, 96, 40);
        b.output(b.binary(Operator::Addition, x, y, 0.09F, 9));
      },
      0, 32 * 1024);
}

}  // namespace
}  // namespace carina::ethosn::test
