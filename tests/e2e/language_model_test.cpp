// SPDX-License-Identifier: Apache-2.0
// The trained decoder in models/: how well it predicts text that it has not seen, in float and in integers,
// and that every representation of the program says the same.
#include <gtest/gtest.h>

#include <cmath>

#include "aten/executor.hpp"
#include "base/npy.hpp"
#include "ir/state.hpp"
#include "pipeline/generate.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/run.hpp"
#include "pipeline/verify.hpp"
#include "support/fixtures.hpp"
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
  auto arrays = readArrays(test::modelFile("language_eval.npz"));
  EXPECT_TRUE(arrays.ok());
  NamedTensors first;
  for (const auto& [name, array] : *arrays) {
    Shape shape = array.shape();
    shape[0] = calls;
    Tensor cut = Tensor::uninitialized(array.dtype(), shape);
    for (int64_t i = 0; i < cut.numElements(); ++i) cut.setIntegerAt(i, array.integerAt(i));
    first.emplace_back(name, std::move(cut));
  }
  return first;
}

/// exp of the mean of -log p(token | those before it in its text). `logits(i)`: of the call for token i.
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
  const auto built = build(options);
  EXPECT_TRUE(built.ok()) << built.error().str();
  auto executor = aten::Executor::create(*built->source);
  EXPECT_TRUE(executor.ok()) << executor.error().str();
  std::vector<Tensor> initial;
  for (const ir::StateVariable& variable : built->state) initial.push_back(variable.initial);
  ir::StateHolder state(std::move(initial));
  const Tensor& tokens = texts[0].second;
  std::vector<std::vector<float>> logits;
  for (int64_t i = 0; i < tokens.numElements(); ++i) {
    Tensor token = Tensor::zeros(DType::Int64, {1, 1}), position = Tensor::zeros(DType::Int64, {1});
    token.setIntegerAt(0, tokens.integerAt(i));
    position.setIntegerAt(0, texts[1].second.integerAt(i));
    auto all = executor->run(state.inputs(std::vector<Tensor>{token, position}));
    EXPECT_TRUE(all.ok()) << all.error().str();
    const std::vector<Tensor> results = state.outputs(std::move(*all));
    const auto row = results[0].as<float>();
    logits.emplace_back(row.begin(), row.end());
  }
  return perplexityOf(tokens,
                      [&](int64_t i) { return std::span<const float>(logits[static_cast<size_t>(i)]); });
}

double programPerplexity(Quantization quantization, const NamedTensors& texts) {
  const test::TempDir folder;
  const auto built = build(optionsOf(quantization));
  EXPECT_TRUE(built.ok()) << built.error().str();
  EXPECT_TRUE(built->partitioned.wholly || built->partitioned.delegates.size() == 1);
  EXPECT_TRUE(writeOutput(*built, folder / "language.pte").ok());
  RunOptions options;
  options.file = folder / "language.pte";
  const auto result = runFile(options, texts);
  EXPECT_TRUE(result.ok()) << result.error().str();
  const auto logits = result->outputs[0].second.as<float>();
  const size_t words = logits.size() / static_cast<size_t>(texts[0].second.numElements());
  return perplexityOf(texts[0].second,
                      [&](int64_t i) { return logits.subspan(static_cast<size_t>(i) * words, words); });
}

TEST(LanguageModel, IntegersPredictUnseenTextAsFloatDoes) {
  const NamedTensors texts = heldOut(kTexts * kContext);
  const double inFloat = floatPerplexity(texts);
  EXPECT_LT(inFloat, 16);  // guessing: 1,024
  const double inInt8 = programPerplexity(Quantization::Int8, texts);
  const double in16x8 = programPerplexity(Quantization::Int16x8, texts);
  EXPECT_NEAR(inInt8, inFloat, 0.02 * inFloat);
  EXPECT_NEAR(in16x8, inFloat, 0.002 * inFloat);
}

TEST(LanguageModel, NpuAndTosaComputeTheSameCodes) {
  const auto built = build(optionsOf(Quantization::Int8));
  ASSERT_TRUE(built.ok()) << built.error().str();
  const auto samples = verificationSamples(*built, heldOut(24));
  ASSERT_TRUE(samples.ok()) << samples.error().str();
  const auto verified = verify(*built, *samples);
  ASSERT_TRUE(verified.ok()) << verified.error().str();
  EXPECT_TRUE(verified->ok());
  EXPECT_EQ(verified->delegateMismatches, 0);
  EXPECT_EQ(verified->samples, 24u);
}

TEST(LanguageModel, GoesOnWithATextOfItsKind) {
  const test::TempDir folder;
  const auto built = build(optionsOf(Quantization::Int8));
  ASSERT_TRUE(built.ok()) << built.error().str();
  ASSERT_TRUE(writeOutput(*built, folder / "language.pte").ok());
  GenerateOptions options;
  options.program = folder / "language.pte";
  options.tokenizer = test::modelFile("language_tokenizer.json");
  options.prompt = "This is free software: you are free";
  options.tokens = 12;
  const auto generated = generate(options);
  ASSERT_TRUE(generated.ok()) << generated.error().str();
  EXPECT_TRUE(generated->text.starts_with(" to change and redistribute it.")) << generated->text;
}

}  // namespace
}  // namespace carina::pipeline
