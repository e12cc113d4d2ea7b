// SPDX-License-Identifier: Apache-2.0
// The model on handwritten streams.
#include <gmock/gmock.h>

#include <random>

#include "ethosn/model/run.hpp"
#include "small_network.hpp"

namespace carina::ethosn {
namespace {

using test::SmallConvolution;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

Target target() {
  return *makeTarget(**findVariant("ethos-n78-4tops-4ple"));
}

std::vector<uint8_t> randomBytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() >> 9);
  return bytes;
}

/// Weights small enough for few results to saturate.
SmallConvolution convolution(int h, int w, int c, int ofms, int kernel, int pad) {
  SmallConvolution conv{.h = h, .w = w, .c = c, .ofms = ofms, .kernel = kernel, .pad = pad};
  std::mt19937 random(1);
  conv.weights.resize(static_cast<size_t>(ofms * kernel * kernel * c));
  for (int16_t& weight : conv.weights) weight = static_cast<int16_t>(static_cast<int>(random() % 511) - 255);
  for (int i = 0; i < ofms; ++i) conv.bias.push_back(static_cast<int32_t>(random() % 2000) - 1000);
  conv.inputZeroPoint = 100;
  conv.outputZeroPoint = 120;
  conv.scale = 40000;
  conv.shift = 26;
  return conv;
}

/// Identity of each channel: outputs equal inputs.
SmallConvolution identity(int h, int w, int c) {
  SmallConvolution conv{.h = h, .w = w, .c = c, .ofms = c};
  conv.weights.resize(static_cast<size_t>(c * c));
  for (int i = 0; i < c; ++i) conv.weights[static_cast<size_t>(i * c + i)] = 2;
  conv.bias.assign(static_cast<size_t>(c), 0);
  conv.scale = 32768;
  conv.shift = 16;
  return conv;
}

RunResult run(const CompiledNetwork& network, const std::vector<uint8_t>& input,
              const RunOptions& options = {}) {
  const ByteSpan span = std::as_bytes(std::span(input));
  auto result = runNetwork(network, std::span(&span, 1), target(), options);
  EXPECT_TRUE(result) << (result ? "" : result.error().str());
  return result ? *std::move(result) : RunResult{};
}

std::string faultOf(const CommandStream& stream, const SmallConvolution& conv) {
  const CompiledNetwork network = test::networkOf(
      stream, static_cast<uint32_t>(conv.h * conv.w * conv.c),
      static_cast<uint32_t>(conv.resultH() * conv.resultW() * conv.resultC()), conv.weightData());
  const auto input = randomBytes(network.inputs[0].size, 3);
  const ByteSpan span = std::as_bytes(std::span(input));
  auto result = runNetwork(network, std::span(&span, 1), target(), {});
  if (!result) return result.error().str();
  return result->findings.empty() ? "" : result->findings[0].str();
}

std::vector<uint8_t> expected(const SmallConvolution& conv, const std::vector<uint8_t>& input) {
  std::vector<uint8_t> out;
  for (int y = 0; y < conv.mceH(); ++y) {
    for (int x = 0; x < conv.mceW(); ++x) {
      for (int o = 0; o < conv.ofms; ++o) {
        int64_t sum = conv.bias[static_cast<size_t>(o)];
        for (int ky = 0; ky < conv.kernel; ++ky) {
          for (int kx = 0; kx < conv.kernel; ++kx) {
            const int yy = y - conv.pad + ky, xx = x - conv.pad + kx;
            if (yy < 0 || xx < 0 || yy >= conv.h || xx >= conv.w) continue;
            for (int i = 0; i < conv.c; ++i) {
              const int value =
                  input[static_cast<size_t>((yy * conv.w + xx) * conv.c + i)] - conv.inputZeroPoint;
              sum +=
                  value *
                  conv.weights[static_cast<size_t>(((o * conv.kernel + ky) * conv.kernel + kx) * conv.c + i)];
            }
          }
        }
        const int64_t scaled = (sum * conv.scale + (int64_t{1} << (conv.shift - 1))) >> conv.shift;
        out.push_back(static_cast<uint8_t>(std::clamp<int64_t>(scaled + conv.outputZeroPoint, 0, 255)));
      }
    }
  }
  return out;
}

struct ConvolutionShape {
  int h, w, c, ofms, kernel, pad;
};

class EthosNConvolution : public ::testing::TestWithParam<ConvolutionShape> {};

TEST_P(EthosNConvolution, IsTheSumOfProducts) {
  const ConvolutionShape s = GetParam();
  const SmallConvolution conv = convolution(s.h, s.w, s.c, s.ofms, s.kernel, s.pad);
  const auto input = randomBytes(static_cast<size_t>(s.h * s.w * s.c), 7);
  const RunResult result = run(conv.network(), input);
  ASSERT_EQ(result.outputs.size(), 1u);
  EXPECT_EQ(result.outputs[0], expected(conv, input));
  EXPECT_TRUE(result.findings.empty());
  EXPECT_EQ(result.stats.macs,
            static_cast<uint64_t>(conv.mceH() * conv.mceW() * s.ofms * s.c * s.kernel * s.kernel));
  EXPECT_THAT(result.assumptions, Contains(Assumption::MceRounding));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, EthosNConvolution,
    ::testing::Values(ConvolutionShape{8, 8, 16, 16, 1, 0}, ConvolutionShape{5, 11, 3, 7, 3, 1},
                      ConvolutionShape{9, 6, 35, 40, 3, 1}, ConvolutionShape{16, 18, 20, 24, 5, 2},
                      ConvolutionShape{12, 12, 17, 33, 3, 0}, ConvolutionShape{1, 1, 64, 10, 1, 0}));

TEST(EthosNModel, OutputsDoNotDependOnTheOrderOfTheLists) {
  const SmallConvolution conv = convolution(9, 6, 35, 40, 3, 1);
  const auto input = randomBytes(9 * 6 * 35, 11);
  const auto first = run(conv.network(), input).outputs;
  for (uint64_t order = 1; order < 20; ++order)
    EXPECT_EQ(run(conv.network(), input, {.order = order}).outputs, first);
}

TEST(EthosNModel, CountsBytesAndStripes) {
  const RunResult result = run(convolution(8, 8, 16, 16, 1, 0).network(), randomBytes(1024, 1));
  EXPECT_EQ(result.stats.writtenBytes, 1024u);
  EXPECT_EQ(result.stats.counters[static_cast<size_t>(Counter::DmaRead)], 3u);
  EXPECT_EQ(result.stats.counters[static_cast<size_t>(Counter::PleStripe)], 1u);
  // 8x8 outputs x 16 channels x 16 OFMs, 16 x 16 generators with 8 units each.
  EXPECT_EQ(result.stats.mceCycles, 8u);
}

TEST(EthosNModel, PleKernelsMoveAndPool) {
  const auto input = randomBytes(16 * 16 * 16, 5);
  const auto at = [&](int y, int x, int c) { return input[static_cast<size_t>((y * 16 + x) * 16 + c)]; };
  const auto check = [&](PleKernel kernel, int h, int w, int c, auto&& value) {
    SmallConvolution conv = identity(16, 16, 16);
    conv.ple = kernel;
    conv.outH = h;
    conv.outW = w;
    conv.outC = c;
    const RunResult result = run(conv.network(), input);
    ASSERT_EQ(result.outputs.size(), 1u);
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        for (int i = 0; i < c; ++i) {
          ASSERT_EQ(result.outputs[0][static_cast<size_t>((y * w + x) * c + i)], value(y, x, i))
              << pleOperationName(kernel.operation);
        }
      }
    }
  };
  using enum PleOperation;
  check({Passthrough, PleSignedness::Any, 16, 16, 1, PleAxis::None}, 16, 16, 16, at);
  check({Downsample2x2, PleSignedness::Any, 16, 16, 1, PleAxis::None}, 8, 8, 16,
        [&](int y, int x, int c) { return at(2 * y, 2 * x, c); });
  check({TransposeXy, PleSignedness::Any, 16, 16, 1, PleAxis::None}, 16, 16, 16,
        [&](int y, int x, int c) { return at(x, y, c); });
  check({Interleave2x2, PleSignedness::Any, 16, 16, 1, PleAxis::None}, 8, 8, 64,
        [&](int y, int x, int c) { return at(2 * y + c / 32, 2 * x + c / 16 % 2, c % 16); });
  check({MaxPool2x2, PleSignedness::Unsigned, 16, 16, 1, PleAxis::None}, 8, 8, 16, [&](int y, int x, int c) {
    return std::max(
        {at(2 * y, 2 * x, c), at(2 * y, 2 * x + 1, c), at(2 * y + 1, 2 * x, c), at(2 * y + 1, 2 * x + 1, c)});
  });
  check({MaxPool3x3Even, PleSignedness::Unsigned, 32, 8, 1, PleAxis::None}, 8, 8, 16,
        [&](int y, int x, int c) {
          uint8_t most = 0;
          for (int yy = 2 * y; yy < std::min(2 * y + 3, 16); ++yy) {
            for (int xx = 2 * x; xx < std::min(2 * x + 3, 16); ++xx) most = std::max(most, at(yy, xx, c));
          }
          return most;
        });
}

TEST(EthosNModel, MeanRoundsAsTheKernelDoes) {
  SmallConvolution conv = identity(8, 8, 16);
  conv.ple = {PleOperation::MeanXy8x8, PleSignedness::Unsigned, 8, 8, 1, PleAxis::None};
  conv.outH = conv.outW = 1;
  const auto input = randomBytes(1024, 9);
  const RunResult result = run(conv.network(), input);
  ASSERT_EQ(result.outputs.size(), 1u);
  for (size_t c = 0; c < 16; ++c) {
    int sum = 0;
    for (size_t i = 0; i < 64; ++i) sum += input[i * 16 + c];
    EXPECT_EQ(result.outputs[0][c], (sum + 32) / 64);
  }
}

TEST(EthosNModel, SigmoidIsCloseToTheFunction) {
  SmallConvolution conv = identity(16, 16, 16);
  conv.ple = {PleOperation::Sigmoid, PleSignedness::Unsigned, 16, 16, 1, PleAxis::None};
  conv.rescale = {0xB8AA, 8 + 3, 0, 0};  // a scale of 1/16
  std::vector<uint8_t> input(16 * 16 * 16);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<uint8_t>(i);
  const RunResult result = run(conv.network(), input);
  ASSERT_EQ(result.outputs.size(), 1u);
  for (size_t i = 0; i < 256; ++i) {
    const double exact = 256 / (1 + std::exp(-static_cast<double>(i) / 16));
    EXPECT_NEAR(result.outputs[0][i], std::min(exact, 255.0), 1.0) << i;
  }
  EXPECT_THAT(result.assumptions, Contains(Assumption::SigmoidTables));
}

TEST(EthosNModel, MissingWaitsAreFound) {
  const SmallConvolution conv = convolution(8, 8, 16, 16, 1, 0);
  const auto good = conv.stream(static_cast<uint32_t>(conv.weightData().size()));
  EXPECT_EQ(faultOf(good, conv), "");
  auto bad = good;
  bad.queue(Queue::Mce)[1] = WaitForCounter{static_cast<uint32_t>(Counter::DmaRead), 2};
  EXPECT_THAT(faultOf(bad, conv), HasSubstr("dma_rd 3 may still write"));
}

TEST(EthosNModel, EveryWaitIsNeeded) {
  const SmallConvolution conv = convolution(8, 8, 16, 16, 1, 0);
  const auto good = conv.stream(static_cast<uint32_t>(conv.weightData().size()));
  for (size_t q = 0; q < kQueues; ++q) {
    for (size_t i = 0; i < good.queues[q].size(); ++i) {
      if (!std::holds_alternative<WaitForCounter>(good.queues[q][i])) continue;
      auto bad = good;
      bad.queues[q].erase(bad.queues[q].begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_NE(faultOf(bad, conv), "") << queueName(static_cast<Queue>(q)) << " command " << i;
    }
  }
}

TEST(EthosNModel, OutputsThatOverwriteTheInputOfTheirStripeAreFound) {
  const SmallConvolution conv = convolution(8, 8, 16, 16, 1, 0);
  auto bad = conv.stream(static_cast<uint32_t>(conv.weightData().size()));
  std::get<StartPleStripe>(bad.queue(Queue::Ple).back()).scratch[5] = SmallConvolution::kIfmAddress / 16;
  EXPECT_THAT(faultOf(bad, conv), HasSubstr("mce_stripe 1 may still read"));
}

TEST(EthosNModel, OverwrittenSlotsAreFound) {
  const SmallConvolution conv = convolution(8, 8, 16, 16, 1, 0);
  auto stream = conv.stream(static_cast<uint32_t>(conv.weightData().size()));
  // Reloads the slot, first after a wait, then while the MCE may still read it.
  auto& reads = stream.queue(Queue::DmaRead);
  reads.push_back(WaitForCounter{static_cast<uint32_t>(Counter::MceStripe), 1});
  reads.push_back(reads[1]);
  EXPECT_EQ(faultOf(stream, conv), "");
  reads.erase(reads.end() - 2);
  EXPECT_THAT(faultOf(stream, conv), HasSubstr("may still"));
}

TEST(EthosNModel, DeadlockedListsAreNamed) {
  const SmallConvolution conv = convolution(8, 8, 16, 16, 1, 0);
  auto stream = conv.stream(static_cast<uint32_t>(conv.weightData().size()));
  stream.queue(Queue::DmaRead)
      .insert(stream.queue(Queue::DmaRead).begin(),
              WaitForCounter{static_cast<uint32_t>(Counter::DmaWrite), 1});
  EXPECT_THAT(faultOf(stream, conv), HasSubstr("dma_rd at command 0"));
}

TEST(EthosNModel, FaultsNameListAndCommand) {
  const SmallConvolution conv = convolution(8, 8, 16, 16, 1, 0);
  const auto good = conv.stream(static_cast<uint32_t>(conv.weightData().size()));
  auto bad = good;
  std::get<DmaCommand>(bad.queue(Queue::DmaRead)[1]).sramAddress = sram_address::kBytes.of(0xFFF0);
  EXPECT_THAT(faultOf(bad, conv), HasSubstr("list dma_rd, command 1"));
  bad = good;
  std::get<DmaCommand>(bad.queue(Queue::DmaRead)[1]).dramOffset = 0xFFFFFFF0;
  EXPECT_THAT(faultOf(bad, conv), HasSubstr("of a buffer of 1024 bytes"));
  bad = good;
  std::get<Agent::Ifm>(bad.agents[0].data).buffer = 77;
  EXPECT_THAT(faultOf(bad, conv), HasSubstr("buffer 77"));
  bad = good;
  std::get<Agent::Ofm>(bad.agents[5].data).buffer = 1;
  EXPECT_THAT(faultOf(bad, conv), HasSubstr("a store writes to the input buffer"));
  bad = good;
  std::get<PleScheduler>(bad.agents[4].data).pleKernel += 1;
  EXPECT_THAT(faultOf(bad, conv), HasSubstr("the MCE produces results for"));
  bad = good;
  std::get<ProgramMceStripe>(bad.queue(Queue::Mce)[0]).ofmConfig = ofm_config::kNumOfm.of(17);
  EXPECT_THAT(faultOf(bad, conv), HasSubstr("weights of OFM 16"));
  bad = good;
  bad.queue(Queue::Ple).erase(bad.queue(Queue::Ple).begin() + 1, bad.queue(Queue::Ple).begin() + 3);
  EXPECT_THAT(faultOf(bad, conv), HasSubstr("is not loaded"));
  bad = good;
  for (Agent& agent : bad.agents) {
    if (auto* mce = std::get_if<MceScheduler>(&agent.data)) mce->pleKernel = 57;
    if (auto* ple = std::get_if<PleScheduler>(&agent.data)) ple->pleKernel = 57;
    if (auto* loader = std::get_if<PleLoader>(&agent.data)) loader->pleKernel = 57;
  }
  EXPECT_THAT(faultOf(bad, conv), HasSubstr("the network is for ethos-n78-1tops-4ple"));
}

TEST(EthosNModel, WrongInputsAreRefused) {
  const CompiledNetwork network = convolution(8, 8, 16, 16, 1, 0).network();
  const std::vector<uint8_t> few(1000);
  const ByteSpan span = std::as_bytes(std::span(few));
  auto result = runNetwork(network, std::span(&span, 1), target(), {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().str(), HasSubstr("1000 bytes; the network takes 1024"));
  EXPECT_FALSE(runNetwork(network, {}, target(), {}));
}

TEST(EthosNModel, WorkIsBounded) {
  const CompiledNetwork network = convolution(8, 8, 16, 16, 1, 0).network();
  const auto input = randomBytes(1024, 1);
  const ByteSpan span = std::as_bytes(std::span(input));
  WorkBudget few(1000), many(1'000'000);
  auto result = runNetwork(network, std::span(&span, 1), target(), {.budget = &few});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().str(), HasSubstr("the limit for this execution is 1e+03"));
  ASSERT_TRUE(runNetwork(network, std::span(&span, 1), target(), {.budget = &many}));
  // 16,384 products and their overhead.
  EXPECT_THAT(many.most() - many.left(), AllOf(Gt(20'000), Lt(200'000)));
}

}  // namespace
}  // namespace carina::ethosn
