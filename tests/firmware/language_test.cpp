// SPDX-License-Identifier: Apache-2.0
// A language model as firmware: on the virtual platform it generates the same text as `carina generate`,
// token for token.
#include <gmock/gmock.h>

#include "base/file.hpp"
#include "npu/isa/payload.hpp"
#include "pipeline/generate.hpp"
#include "pipeline/methods.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/program.hpp"
#include "ran_images.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::firmware {
namespace {

using testing::HasSubstr;
using testing::Not;

std::filesystem::path tinyFile(const std::string& name) {
  return test::dataDir() / "language" / name;
}

class Language : public testing::Test {
 protected:
  /// Compiles the step of a model, and its prefill if asked, to program(). `folder` holds both.
  void compile(const std::filesystem::path& folder, const std::string& target, int64_t context,
               bool prefill = true) {
    pipeline::Options options;
    options.target = target;
    options.constantMethods = {{"get_max_context_len", context}};
    const auto sourceOf = [&](const char* method, const std::string& name) {
      return pipeline::MethodSource{method, folder / (name + ".pt2"),
                                    target == "cpu" ? std::filesystem::path() : folder / (name + ".npz")};
    };
    std::vector<pipeline::MethodSource> sources = {sourceOf("decode", "language")};
    if (prefill) sources.push_back(sourceOf("prefill", "language_prefill"));
    const auto built = require(pipeline::buildMethods(options, sources));
    const auto bytes = require(pte::writeProgram(built.program));
    ASSERT_TRUE(writeFile(program(), bytes).ok());
  }

  /// Replaces the first command of each NPU part with one that no NPU knows.
  void breakCommands() {
    const std::string bytes(asText((*MappedFile::open(program()))->bytes()));
    auto broken = require(pte::readProgram(asBytes(bytes)));
    for (pte::Method& method : broken.methods) {
      for (pte::Delegate& delegate : method.delegates) {
        auto blob = pte::parseDelegateBlob(delegate.blob);
        auto payload = npu::readPayload(blob->payload);
        const npu::Target& target = **npu::payloadTarget(*payload);
        payload->words.front() = 0x3fe;
        const std::vector<uint8_t> changed = *npu::buildPayload(target, payload->words);
        const ByteSpan now = std::as_bytes(std::span(changed));
        blob->payload.assign(now.begin(), now.end());
        delegate.blob = pte::buildDelegateBlob(*blob);
      }
    }
    const auto written = pte::writeProgram(broken);
    ASSERT_TRUE(written.ok() && writeFile(program(), *written).ok());
  }

  pipeline::Generated generate(const std::filesystem::path& tokenizer, const std::string& prompt,
                               int64_t tokens) {
    pipeline::GenerateOptions options;
    options.program = program();
    options.tokenizer = tokenizer;
    options.prompt = prompt;
    options.tokens = tokens;
    return require(pipeline::generate(options));
  }

  ImageOptions image(const std::string& platform, const std::filesystem::path& tokenizer,
                     int64_t tokens) const {
    ImageOptions options = imageOptions(program(), platform);
    options.plan.text.emplace();
    options.plan.text->tokenizer = tokenizer;
    options.plan.text->tokens = tokens;
    return options;
  }

  /// What the image prints when the UART receives `typed`.
  Ran run(const ImageOptions& options, const std::string& typed) {
    platform::Options platform;
    platform.uartInput = [typed, at = size_t{0}]() mutable {
      return at < typed.size() ? static_cast<int>(static_cast<uint8_t>(typed[at++])) : -1;
    };
    return runImage(options, folder_ / "x.elf", std::move(platform));
  }

  static std::string lineOf(const char* name, int64_t tokens, const pipeline::MethodCalls& calls) {
    return fmt::format("I [carina] {}: {} tokens in {} call{}, {} NPU cycles", name, tokens, calls.calls,
                       calls.calls == 1 ? "" : "s", calls.npuCycles);
  }

  std::filesystem::path program() const { return folder_ / "x.pte"; }

  const test::TempDir folder_;
};

TEST_F(Language, GeneratesTheSameTextAsOnTheHost) {
  CARINA_NEED_CROSS_COMPILER();
  compile(test::modelFile(""), "ethos-u85-256", 128);
  const auto tokenizer = test::modelFile("language_tokenizer.json");
  const std::vector<std::string> prompts = {
      "This is free software: you are free to change and redistribute it.", "NAME", "The options are"};
  std::string typed;
  for (const std::string& prompt : prompts) typed += prompt + "\r\n";
  const Ran ran = run(image("corstone-320", tokenizer, 24), typed + "\r\n");
  EXPECT_EQ(ran.outcome.reason, platform::EndReason::Exit) << ran.outcome.explanation;
  EXPECT_EQ(ran.outcome.exitCode, 0) << ran.text;
  for (const std::string& prompt : prompts) {
    const auto said = generate(tokenizer, prompt, 24);
    EXPECT_THAT(ran.text, HasSubstr("> " + prompt + said.text + "\nI [carina] prompt: "));
    // The same tokens take the same calls, each with the same NPU cycles.
    EXPECT_THAT(ran.text, HasSubstr(lineOf("text", static_cast<int64_t>(said.tokens.size()), said.writing)));
  }
}

/// language_model_test compares the other representations.
TEST_F(Language, AHundredTokensEqualThoseOfTheHost) {
  CARINA_NEED_CROSS_COMPILER();
  compile(test::modelFile(""), "ethos-u85-256", 128, false);
  const auto tokenizer = test::modelFile("language_tokenizer.json");
  const std::string prompt = "This is free software: you are free";
  const Ran ran = run(image("corstone-320", tokenizer, 100), prompt + "\n\n");
  EXPECT_EQ(ran.outcome.exitCode, 0) << ran.text;
  const auto said = generate(tokenizer, prompt, 100);
  ASSERT_EQ(said.tokens.size(), 100u);
  EXPECT_THAT(ran.text, HasSubstr("> " + prompt + said.text + "\nI [carina] prompt: "));
  EXPECT_THAT(ran.text, HasSubstr(lineOf("text", 100, said.writing)));
}

TEST_F(Language, EveryTargetAnswersLinkedAndTypedPromptsTheSame) {
  CARINA_NEED_CROSS_COMPILER();
  struct Case {
    const char *target, *platform;
    bool prefill;
  };
  const auto tokenizer = tinyFile("tokenizer.json");
  for (const Case& c : {Case{"ethos-u55-128", "corstone-300", true},
                        {"ethos-u65-256", "corstone-300", false},
                        {"ethos-u85-256", "corstone-320", false},
                        {"cpu", "corstone-320", true}}) {
    SCOPED_TRACE(c.target);
    compile(tinyFile(""), c.target, 16, c.prefill);
    if (HasFatalFailure()) return;
    ImageOptions typed = image(c.platform, tokenizer, 8), linked = typed;
    linked.plan.text->prompt = "GNU";
    const Ran one = run(typed, "GNX\x08U\n\x04"), two = run(linked, "");
    EXPECT_EQ(one.outcome.exitCode, 0) << one.text;
    EXPECT_EQ(two.outcome.exitCode, 0) << two.text;
    const auto said = generate(tokenizer, "GNU", 8);
    ASSERT_EQ(said.tokens.size(), 8u);
    const auto textOf = [](const std::string& text, const std::string& begin) {
      const size_t at = text.find(begin);
      return at == std::string::npos
                 ? text
                 : text.substr(at + begin.size(), text.find("\nI [carina] prompt", at) - at - begin.size());
    };
    std::string shown;  // as a terminal receives it
    for (const char character : said.text) {
      const auto byte = static_cast<uint8_t>(character);
      shown += byte < ' ' && character != '\n' && character != '\t' ? fmt::format("\\x{:02x}", byte)
                                                                    : std::string(1, character);
    }
    EXPECT_EQ(textOf(one.text, "> GNX\b \bU"), shown) << one.text;
    EXPECT_EQ(textOf(two.text, "\nGNU"), shown) << two.text;
    EXPECT_THAT(two.text, HasSubstr(lineOf("text", 8, said.writing)));
  }
}

TEST_F(Language, RejectedPromptsAreReportedAndTheNextOneIsAnswered) {
  CARINA_NEED_CROSS_COMPILER();
  compile(tinyFile(""), "ethos-u85-256", 16);
  const Ran ran = run(image("corstone-320", tinyFile("tokenizer.json"), 4),
                      "sixteen letters.\n" + std::string(300, 'x') + "\nGNU\n\n");
  EXPECT_EQ(ran.outcome.exitCode, 1);
  EXPECT_THAT(ran.text,
              HasSubstr("E [carina] the prompt has 17 tokens, the context 16: no room for another one"));
  EXPECT_THAT(ran.text, HasSubstr("E [carina] the prompt has more than 256 bytes"));
  EXPECT_THAT(ran.text, HasSubstr("I [carina] text: 4 tokens in 3 calls"));
  EXPECT_THAT(ran.text, HasSubstr("Application exit code: 1."));
}

TEST_F(Language, AnNpuFaultIsReportedOnItsOwnLine) {
  CARINA_NEED_CROSS_COMPILER();
  compile(tinyFile(""), "ethos-u85-256", 16);
  breakCommands();
  const Ran ran = run(image("corstone-320", tinyFile("tokenizer.json"), 4), "xx\n\n");
  EXPECT_EQ(ran.outcome.exitCode, 1);
  EXPECT_THAT(ran.text, HasSubstr("x\nE [carina] device fault"));
}

TEST_F(Language, EndOfInputDoesNotWaitForever) {
  CARINA_NEED_CROSS_COMPILER();
  compile(tinyFile(""), "ethos-u85-256", 16, false);
  const Ran ran = run(image("corstone-320", tinyFile("tokenizer.json"), 4), "GNU\n");
  EXPECT_EQ(ran.outcome.reason, platform::EndReason::Deadlock) << ran.outcome.explanation;
  EXPECT_THAT(ran.text, HasSubstr("I [carina] text: 4 tokens"));
}

TEST_F(Language, OtherProgramsAreRefusedBeforeAnythingIsBuilt) {
  compile(tinyFile(""), "ethos-u85-256", 16);
  const auto expectError = [&](const ImageOptions& options, const char* says) {
    EXPECT_THAT(errorOf(buildImage(options)), HasSubstr(says));
  };
  ImageOptions options = image("corstone-320", tinyFile("language.npz"), 8);
  expectError(options, "language.npz: is neither a tokenizer.json nor a SentencePiece file");
  options.plan.text->tokenizer = test::modelFile("language_tokenizer.json");
  expectError(options, "the tokenizer has 1024 tokens");
  options.plan.text->tokenizer = tinyFile("tokenizer.json");
  options.plan.text->prompt = "sixteen letters.";
  expectError(options, "has 17 tokens, the context 16");
  options.plan.text->context = 1000;
  expectError(options, "--context: is 1000, but the program says that its state has room for 16");
  options = image("corstone-300", tinyFile("tokenizer.json"), 8);
  expectError(options, "corstone-300 has");
  ASSERT_TRUE(compileNetwork("digits8", "ethos-u55-128", "", program()).ok());
  expectError(options, "not one token and its position");
}

}  // namespace
}  // namespace carina::firmware
