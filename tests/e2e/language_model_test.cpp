// SPDX-License-Identifier: Apache-2.0
// The trained decoder in models/: how well it predicts text that it has not seen, in float and in integers,
// and that every representation of the program generates the same text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "aten/executor.hpp"
#include "base/npy.hpp"
#include "ir/state.hpp"
#include "partition/integer_executor.hpp"
#include "pipeline/generate.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/run.hpp"
#include "pipeline/verify.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

constexpr int64_t kContext = 128;
constexpr int64_t kTexts = 3;  // of the ten in language_eval.npz

Options optionsOf(Quantization quantization) {
  Options options;
  options.model = test::modelFile("language.pt2");
  options.calibration = test::modelFile("language.npz");
  options.target = "ethos-u85-256";
  options.quantization = quantization;
  options.constantMethods = {{"get_max_context_len", kContext}};
  return options;
}

/// Tokens [texts * context, 1, 1] and positions [texts * context, 1] of the first texts.
NamedTensors heldOut(int64_t calls) {
  auto arrays = require(readArrays(test::modelFile("language_eval.npz")));
  NamedTensors first;
  for (const auto& [name, array] : arrays) {
    Shape shape = array.shape();
    shape[0] = calls;
    Tensor cut = Tensor::uninitialized(array.dtype(), shape);
    for (int64_t i = 0; i < cut.numElements(); ++i) cut.setIntegerAt(i, array.integerAt(i));
    first.emplace_back(name, std::move(cut));
  }
  return first;
}

/// The network's inputs of one call.
std::vector<Tensor> callOf(int64_t token, size_t position) {
  Tensor tokens = Tensor::zeros(DType::Int64, {1, 1}), positions = Tensor::zeros(DType::Int64, {1});
  tokens.setIntegerAt(0, token);
  positions.setIntegerAt(0, static_cast<int64_t>(position));
  return {tokens, positions};
}

/// The text that the program of a build generates.
Generated textOf(const Build& built, const std::string& prompt, int64_t tokens) {
  const test::TempDir folder;
  EXPECT_TRUE(writeOutput(built, folder / "language.pte").ok());
  GenerateOptions options;
  options.program = folder / "language.pte";
  options.tokenizer = test::modelFile("language_tokenizer.json");
  options.prompt = prompt;
  options.tokens = tokens;
  return require(generate(options));
}

/// exp of the mean of -log p(token | those before it in its text). `logits(i)`: logits of the call for token
/// i.
template <typename Logits>
double perplexityOf(const Tensor& tokens, const Logits& logits) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i + 1 < tokens.numElements(); ++i) {
    if (i % kContext == kContext - 1) continue;
    const std::span<const float> row = logits(i);
    double largest = row[0], total = 0;
    for (const float value : row) largest = std::max(largest, static_cast<double>(value));
    for (const float value : row) total += std::exp(value - largest);
    sum -= row[static_cast<size_t>(tokens.integerAt(i + 1))] - largest - std::log(total);
    ++count;
  }
  return std::exp(sum / static_cast<double>(count));
}

double floatPerplexity(const NamedTensors& texts) {
  Options options = optionsOf(Quantization::None);
  options.target = "cpu";
  const auto built = require(build(options));
  auto executor = require(aten::Executor::create(*built.source));
  std::vector<Tensor> initial;
  for (const ir::StateVariable& variable : built.state) initial.push_back(variable.initial);
  ir::StateHolder state(std::move(initial));
  const Tensor& tokens = texts[0].second;
  std::vector<std::vector<float>> logits;
  for (int64_t i = 0; i < tokens.numElements(); ++i) {
    const auto position = static_cast<size_t>(texts[1].second.integerAt(i));
    auto all = require(executor.run(state.inputs(callOf(tokens.integerAt(i), position))));
    const std::vector<Tensor> results = state.outputs(std::move(all));
    const auto row = results[0].as<float>();
    logits.emplace_back(row.begin(), row.end());
  }
  return perplexityOf(tokens,
                      [&](int64_t i) { return std::span<const float>(logits[static_cast<size_t>(i)]); });
}

/// Perplexity of the program built with these options; `bytes` receives the size of its constants.
double programPerplexity(const Options& compile, const NamedTensors& texts, size_t* bytes = nullptr) {
  const test::TempDir folder;
  const auto built = require(build(compile));
  EXPECT_TRUE(built.partitioned.wholly || built.partitioned.delegates.size() == 1);
  if (bytes) *bytes = built.compiled.at(0).constants.size();
  EXPECT_TRUE(writeOutput(built, folder / "language.pte").ok());
  RunOptions options;
  options.file = folder / "language.pte";
  const auto result = require(runFile(options, texts));
  const auto logits = result.outputs[0].second.as<float>();
  const size_t words = logits.size() / static_cast<size_t>(texts[0].second.numElements());
  return perplexityOf(texts[0].second,
                      [&](int64_t i) { return logits.subspan(static_cast<size_t>(i) * words, words); });
}

TEST(LanguageModel, IntegersPredictUnseenTextAsWellAsFloat) {
  const NamedTensors texts = heldOut(kTexts * kContext);
  const double inFloat = floatPerplexity(texts);
  EXPECT_LT(inFloat, 16);  // guessing: 1,024
  Options mixed = optionsOf(Quantization::Int8);
  mixed.quantizeConfig = test::modelFile("language_mixed.json");
  const double inInt8 = programPerplexity(optionsOf(Quantization::Int8), texts);
  const double inMixed = programPerplexity(mixed, texts);
  const double in16x8 = programPerplexity(optionsOf(Quantization::Int16x8), texts);
  EXPECT_NEAR(inInt8, inFloat, 0.02 * inFloat);
  EXPECT_NEAR(inMixed, inFloat, 0.01 * inFloat);
  EXPECT_NEAR(in16x8, inFloat, 0.002 * inFloat);
}

TEST(LanguageModel, WeightsOfFewerBitsAreSmallerAndPredictNearlyAsWell) {
  const NamedTensors texts = heldOut(kTexts * kContext);
  const double inFloat = floatPerplexity(texts);
  const Options whole = optionsOf(Quantization::Int8);
  Options four = whole, five = whole, narrow = whole;
  four.weightBits = 4;
  five.weightBits = 5;
  narrow.quantizeConfig = test::modelFile("language_narrow.json");
  size_t ofFour = 0, ofFive = 0, ofNarrow = 0;
  EXPECT_LT(programPerplexity(four, texts, &ofFour), 1.12 * inFloat);
  EXPECT_LT(programPerplexity(five, texts, &ofFive), 1.03 * inFloat);
  EXPECT_LT(programPerplexity(narrow, texts, &ofNarrow), 1.05 * inFloat);
  const auto built = require(build(whole));
  const auto bytes = static_cast<double>(built.compiled.at(0).constants.size());
  EXPECT_LT(static_cast<double>(ofFour), 0.62 * bytes);
  EXPECT_LT(static_cast<double>(ofFive), 0.72 * bytes);
  EXPECT_LT(static_cast<double>(ofNarrow), 0.7 * bytes);
}

TEST(LanguageModel, NpuAndTosaComputeTheSameCodes) {
  Options narrow = optionsOf(Quantization::Int8), wideNarrow = optionsOf(Quantization::Int16x8);
  narrow.quantizeConfig = test::modelFile("language_narrow.json");
  wideNarrow.weightBits = 4;
  for (const Options& options : {optionsOf(Quantization::Int8), narrow, wideNarrow}) {
    const auto built = require(build(options));
    const auto samples = require(verificationSamples(built, heldOut(24)));
    const auto verified = require(verify(built, samples));
    EXPECT_TRUE(verified.ok());
    EXPECT_EQ(verified.delegateMismatches, 0);
    EXPECT_EQ(verified.samples, 24u);
  }
}

TEST(LanguageModel, ContinuesATextOfItsKind) {
  const auto built = require(build(optionsOf(Quantization::Int8)));
  const Generated generated = textOf(built, "This is free software: you are free", 12);
  EXPECT_TRUE(generated.text.starts_with(" to change and redistribute it.")) << generated.text;
}

/// The most likely tokens after `prompt`, one by one, that the quantized network computes in integers.
std::vector<int64_t> tokensInIntegers(const Build& built, std::vector<int64_t> prompt, size_t count) {
  auto executor = require(partition::IntegerExecutor::create(*built.simulation));
  EXPECT_EQ(executor.inIntegers(), executor.quantized());
  std::vector<Tensor> initial;
  for (size_t i = 0; i < built.state.size(); ++i) {
    const ir::Value& input =
        *built.simulation->inputs()[ir::callerInputs(*built.simulation, built.state) + i];
    initial.push_back(convert(built.state[i].initial, input.dtype()));
  }
  ir::StateHolder holder(std::move(initial));
  std::vector<int64_t> tokens;
  for (size_t i = 0; tokens.size() < count; ++i) {
    const std::vector<Tensor> results =
        holder.outputs(require(executor.run(holder.inputs(callOf(prompt[i], i)))));
    if (i + 1 < prompt.size()) continue;
    const auto logits = results[0].as<float>();
    tokens.push_back(std::max_element(logits.begin(), logits.end()) - logits.begin());
    prompt.push_back(tokens.back());
  }
  return tokens;
}

/// (Firmware: Language.AHundredTokensEqualThoseOfTheHost.)
TEST(LanguageModel, EveryIntegerRepresentationChoosesTheSameTokens) {
  const auto built = require(build(optionsOf(Quantization::Int8)));
  const Generated generated = textOf(built, "This is free software: you are free", 100);
  ASSERT_EQ(generated.tokens.size(), 100u);
  EXPECT_EQ(tokensInIntegers(built, generated.promptTokens, 100), generated.tokens);
  // The TOSA interpreter computes the NPU model's codes in every call that generated the tokens; both equal
  // the simulation's.
  std::vector<int64_t> all = generated.promptTokens;
  all.insert(all.end(), generated.tokens.begin(), generated.tokens.end() - 1);
  std::vector<quantize::Sample> calls;
  for (size_t i = 0; i < all.size(); ++i) {
    calls.push_back(callOf(all[i], i));
  }
  const auto verified = require(verify(built, calls, nullptr, Simulation::Integers));
  EXPECT_EQ(verified.delegateMismatches, 0);
  EXPECT_EQ(verified.samples, all.size());
  EXPECT_EQ(verified.outputs.at(0).worstLsb, 0);
  for (const DriftResult& drift : verified.drift) EXPECT_EQ(drift.worstLsb, 0) << drift.value;
}

}  // namespace
}  // namespace carina::pipeline
