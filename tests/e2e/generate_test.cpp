// SPDX-License-Identifier: Apache-2.0
// Text from a small untrained decoder (models/language.py tiny).
#include "pipeline/generate.hpp"

#include <gtest/gtest.h>

#include <map>

#include "aten/executor.hpp"
#include "base/file.hpp"
#include "ir/state.hpp"
#include "pipeline/pipeline.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"
#include "tokenizer/sentence_piece_bytes.hpp"

namespace carina::pipeline {
namespace {

std::filesystem::path fileOf(const char* name) {
  return test::dataDir() / "language" / name;
}

class Generate : public testing::Test {
 protected:
  Build compile(const std::string& target, bool recordsContext) {
    Options options;
    options.model = fileOf("language.pt2");
    options.target = target;
    if (target != "cpu") options.calibration = fileOf("language.npz");
    if (recordsContext) options.constantMethods = {{"get_max_context_len", 16}};
    auto built = require(build(options));
    require(writeOutput(built, folder_ / "program.pte"));
    return built;
  }

  GenerateOptions options(const std::string& prompt) const {
    GenerateOptions result;
    result.program = folder_ / "program.pte";
    result.tokenizer = fileOf("tokenizer.json");
    result.prompt = prompt;
    result.tokens = 8;
    return result;
  }

  void expectError(const GenerateOptions& options, std::string_view says) {
    const std::string error = errorOf(generate(options));
    EXPECT_NE(error.find(says), std::string::npos) << error;
  }

  const test::TempDir folder_;
};

TEST_F(Generate, TheCpuProgramGeneratesTheTokensOfTheFloatExecutor) {
  const Build built = compile("cpu", true);
  const auto generated = require(generate(options("GNU")));
  EXPECT_EQ(generated.context, 16);
  auto executor = require(aten::Executor::create(*built.source));
  std::vector<Tensor> initial;
  for (const ir::StateVariable& variable : built.state) initial.push_back(variable.initial);
  ir::StateHolder state(std::move(initial));
  std::vector<int64_t> tokens = generated.promptTokens;
  EXPECT_EQ(tokens, (std::vector<int64_t>{0, 'G' + 1, 'N' + 1, 'U' + 1}));
  Sampler greedy{Sampling{}};
  for (size_t i = 0; i + 1 < generated.promptTokens.size() + generated.tokens.size(); ++i) {
    Tensor token = Tensor::zeros(DType::Int64, {1, 1}), position = Tensor::zeros(DType::Int64, {1});
    token.setIntegerAt(0, tokens[i]);
    position.setIntegerAt(0, static_cast<int64_t>(i));
    auto all = require(executor.run(state.inputs(std::vector<Tensor>{token, position})));
    const std::vector<Tensor> results = state.outputs(std::move(all));
    if (i + 1 >= generated.promptTokens.size()) tokens.push_back(greedy.choose(results[0].as<float>()));
  }
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(generated.promptTokens.size()));
  EXPECT_EQ(generated.tokens, tokens);
}

TEST_F(Generate, AcceptsSentencePieceFiles) {
  using namespace tokenizer::file;
  compile("cpu", true);
  const GenerateOptions json = options("GNU");
  // A piece for each byte, numbered one more than the byte as in the tokenizer.json.
  std::string bytes;
  for (int b = 0; b < 256; ++b) bytes += piece(fmt::format("<0x{:02X}>", b), 0, 6);
  ASSERT_TRUE(
      writeFile(folder_ / "tokenizer.model", kUnknown + bytes + text(2, integer(35, 1)) + kPlain).ok());
  GenerateOptions asked = json;
  asked.tokenizer = folder_ / "tokenizer.model";
  const auto generated = require(generate(asked));
  EXPECT_EQ(generated.promptTokens, (std::vector<int64_t>{'G' + 1, 'N' + 1, 'U' + 1}));
  GenerateOptions bare = json;
  bare.beginning = false;
  const auto same = require(generate(bare));
  EXPECT_EQ(generated.tokens, same.tokens);
  EXPECT_EQ(generated.text, same.text);
}

TEST_F(Generate, NpuProgramStreamsItsTextAndCountsCycles) {
  const Build built = compile("ethos-u85-256", true);
  EXPECT_TRUE(built.partitioned.wholly);
  GenerateOptions asked = options("GNU");
  std::string streamed;
  asked.write = [&](const std::string& piece) { streamed += piece; };
  const auto generated = require(generate(asked));
  EXPECT_EQ(streamed, "GNU" + generated.text);
  EXPECT_EQ(generated.tokens.size(), 8u);
  EXPECT_EQ(generated.target, "ethos-u85-256");
  EXPECT_FALSE(generated.prefill.has_value());
  EXPECT_EQ(generated.prompting.calls, 4u);
  EXPECT_EQ(generated.writing.calls, 7u);
  EXPECT_GT(generated.writing.npuCycles, 0);
  EXPECT_EQ(generated.writing.npuCycles / 7, generated.prompting.npuCycles / 4);
  ASSERT_TRUE(generated.writing.time.has_value());
  EXPECT_GT(generated.writing.time->clockHz, 0);
  const auto again = require(generate(asked));
  EXPECT_EQ(again.tokens, generated.tokens);
  asked.sampling.temperature = 2;
  asked.sampling.topK = 1;
  const auto likeliest = require(generate(asked));
  EXPECT_EQ(likeliest.tokens, generated.tokens);
}

TEST_F(Generate, EndsAtTheEndOfTheContext) {
  compile("cpu", true);
  GenerateOptions asked = options("GNU");
  asked.tokens = 100;
  const auto generated = require(generate(asked));
  EXPECT_TRUE(generated.ended || generated.full);
  EXPECT_LE(generated.tokens.size(), 13u);  // 4 are of the prompt; one more token than calls
}

TEST_F(Generate, MismatchesAreReported) {
  compile("cpu", true);
  expectError(options("sixteen letters."), "has 17 tokens, the context 16");
  GenerateOptions broken = options("x");
  broken.tokenizer = fileOf("language.npz");
  expectError(broken, "is neither a tokenizer.json nor a SentencePiece file");
  compile("cpu", false);
  expectError(options("x"), "does not say how many tokens its state has room for");
  GenerateOptions given = options("x");
  given.context = 16;
  EXPECT_TRUE(generate(given).ok());
  given.context = 200;  // more than any axis of keys and values
  expectError(given, "--context: is 200, but no buffer of the program's state has room for more than");
  compile("ethos-u85-256", true);
  given.context = 17;
  expectError(given, "--context: is 17, but the program says that its state has room for 16");
  given.context = 12;
  EXPECT_TRUE(generate(given).ok());
  Options other;
  other.model = test::dataDir() / "state" / "recurrent.pt2";
  other.target = "cpu";
  const auto built = require(build(other));
  ASSERT_TRUE(writeOutput(built, folder_ / "program.pte").ok());
  given.program = folder_ / "program.pte";
  expectError(given, "not one token and its position");
}

TEST(Sampler, KeepsToTheMostLikelyTokens) {
  const std::vector<float> logits{0, 3, 1, 3, 2};
  EXPECT_EQ(Sampler(Sampling{}).choose(logits), 1);  // the first of equal ones
  const auto counts = [&](Sampling settings) {
    settings.seed = 5;
    Sampler sampler(settings);
    std::map<int64_t, int> result;
    for (int i = 0; i < 4000; ++i) ++result[sampler.choose(logits)];
    return result;
  };
  const auto all = counts({1, 0, 1, 0});
  EXPECT_EQ(all.size(), 5u);
  // exp(3) of exp(0) + exp(1) + exp(2) + 2 exp(3)
  EXPECT_NEAR(all.at(1), 4000 * 20.0855 / 51.2784, 120);
  EXPECT_EQ(counts({1, 2, 1, 0}).size(), 2u);
  const auto most = counts({1, 0, 0.5, 0});  // two of 0.39 each
  EXPECT_EQ(most.size(), 2u);
  EXPECT_EQ(most.count(1) + most.count(3), 2u);
  EXPECT_EQ(counts({1, 0, 0, 0}).size(), 1u);
}

}  // namespace
}  // namespace carina::pipeline
