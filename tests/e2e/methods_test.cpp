// SPDX-License-Identifier: Apache-2.0
// Programs of several methods: on one buffer (models/method_networks.py), against PyTorch; and a decoder with
// a method that reads many tokens (models/language.py tiny).
#include "pipeline/methods.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "pipeline/check.hpp"
#include "pipeline/command_streams.hpp"
#include "pipeline/generate.hpp"
#include "pipeline/port_codes.hpp"
#include "pipeline/profile.hpp"
#include "pipeline/run.hpp"
#include "pte/delegate_blob.hpp"
#include "quantize/sqnr.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

std::filesystem::path methodFile(const std::string& name) {
  return test::dataDir() / "methods" / name;
}

NamedTensors methodArrays(const std::string& name) {
  return require(readArrays(methodFile(name)));
}

MethodSource sourceOf(const std::string& name, const std::string& target) {
  MethodSource source{name, methodFile(name + ".pt2"), {}};
  if (target != "cpu" && name != "reset") source.calibration = methodFile(name + ".npz");
  return source;
}

Result<MethodsBuild> buildBuffer(const std::string& target, ProgramIo io = ProgramIo::Float) {
  Options options;
  options.target = target;
  options.inputs = options.outputs = io;
  return buildMethods(
      options, std::vector{sourceOf("write", target), sourceOf("read", target), sourceOf("reset", target)});
}

Result<MethodsBuild> buildLanguage(const std::string& target, bool prefill = true) {
  const auto folder = test::dataDir() / "language";
  const auto samples = [&](const char* name) {
    return target == "cpu" ? std::filesystem::path() : folder / name;
  };
  Options options;
  options.target = target;
  options.constantMethods = {{"get_max_context_len", 16}};
  std::vector<MethodSource> sources{{"decode", folder / "language.pt2", samples("language.npz")}};
  if (prefill) {
    sources.insert(sources.begin(),
                   {"prefill", folder / "language_prefill.pt2", samples("language_prefill.npz")});
  }
  return buildMethods(options, sources);
}

/// The tensors of pool 2 with names, method by method.
std::vector<std::vector<pte::Tensor>> stateOf(const pte::Program& program) {
  std::vector<std::vector<pte::Tensor>> all;
  for (const pte::Method& method : program.methods) {
    std::vector<pte::Tensor>& own = all.emplace_back();
    for (const pte::Value& value : method.values) {
      const auto* tensor = std::get_if<pte::Tensor>(&value);
      if (tensor && tensor->extra && tensor->allocation->memoryId == pte::StatePool::kMemoryId)
        own.push_back(*tensor);
    }
  }
  return all;
}

class Methods : public testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path write(const MethodsBuild& built, const std::string& name = "program.pte") {
    require(writeFile(folder_ / name, require(pte::writeProgram(built.program))));
    return folder_ / name;
  }

  Result<Generated> generateFrom(const MethodsBuild& built, const std::string& prompt) {
    GenerateOptions options;
    options.program = write(built);
    options.tokenizer = test::dataDir() / "language" / "tokenizer.json";
    options.prompt = prompt;
    options.tokens = 6;
    return generate(options);
  }

  const test::TempDir folder_;
};

/// Calls write and read in turns, then reset and read once more: each finds what another one left in the
/// buffer.
TEST_P(Methods, OneMethodReadsWhatAnotherWrites) {
  const auto built = require(buildBuffer(GetParam()));
  for (const Build& method : built.methods) {
    for (const Diagnostic& warning : method.warnings)
      EXPECT_EQ(warning.message.find("other codes"), std::string::npos) << warning.message;
  }
  ASSERT_EQ(built.shared.size(), 1u);
  EXPECT_EQ(built.shared[0].name, "m.memory");
  EXPECT_EQ(built.shared[0].methods, (std::vector<std::string>{"write", "read", "reset"}));
  const auto state = stateOf(built.program);
  ASSERT_EQ(state.size(), 3u);
  for (const auto& own : state) {
    ASSERT_EQ(own.size(), 1u);
    EXPECT_EQ(own[0], state[0][0]);
  }

  const NamedTensors writes = methodArrays("write.npz"), reads = methodArrays("read.npz");
  const auto call = [](const char* method, const NamedTensors& arrays, int64_t n) {
    return MethodInputs{method, "", {{"in0", slice(*findTensor(arrays, "calib0"), n)}}};
  };
  std::vector<MethodInputs> calls;
  const int64_t turns = findTensor(writes, "calib0")->dim(0);
  for (int64_t n = 0; n < turns; ++n) {
    calls.push_back(call("write", writes, n));
    calls.push_back(call("read", reads, n));
  }
  calls.push_back({"reset", "", {}});
  calls.push_back(call("read", reads, turns));
  RunOptions options;
  options.file = write(built);
  const auto result = require(runMethods(options, calls));
  const Tensor& expected = *findTensor(reads, "out0");
  quantize::Sqnr sqnr;
  for (int64_t n = 0; n <= turns; ++n) {
    const std::string name = n == 0 ? "read.out0" : fmt::format("read.{}.out0", n + 1);
    const Tensor* found = findTensor(result.outputs, name);
    ASSERT_TRUE(found) << name;
    sqnr.add(slice(expected, n), *found);
  }
  EXPECT_GT(sqnr.decibels(), GetParam() == "cpu" ? 100 : 25);
  EXPECT_EQ(result.methods.size(), calls.size());
  EXPECT_EQ(result.samples, calls.size());
}

TEST_P(Methods, AreExactInSequence) {
  for (const bool language : {false, true}) {
    const auto built = require(language ? buildLanguage(GetParam()) : buildBuffer(GetParam()));
    std::vector<std::vector<quantize::Sample>> samples;
    for (size_t m = 0; m < built.methods.size(); ++m) {
      NamedTensors arrays;
      const auto folder = test::dataDir() / (language ? "language" : "methods");
      const std::string file = language ? (m == 0 ? "language_prefill.npz" : "language.npz")
                                        : fmt::format("{}.npz", built.names[m]);
      if (std::filesystem::exists(folder / file)) arrays = *readArrays(folder / file);
      auto own = require(verificationSamples(built.methods[m], arrays));
      if (own.size() > 8) own.resize(8);
      samples.push_back(std::move(own));
    }
    const auto verified = require(verifyMethods(built, samples));
    for (size_t m = 0; m < verified.size(); ++m) {
      EXPECT_TRUE(verified[m].ok()) << built.names[m];
      EXPECT_EQ(verified[m].samples, samples[m].size());
    }
    if (language) {
      // The decoder reads what the other method wrote, in the float network and in the program.
      EXPECT_GT(verified[1].worstDecibels().value_or(100), 15);
    }
  }
}

TEST_P(Methods, ShareStateAndConstantsOfTheCpu) {
  const auto both = require(buildLanguage(GetParam())), one = require(buildLanguage(GetParam(), false));
  EXPECT_EQ(both.shared.size(), 4u);
  EXPECT_TRUE(both.warnings.empty());
  for (const SharedVariable& variable : both.shared)
    EXPECT_TRUE(variable.type.starts_with(GetParam() == "cpu" ? "float32[" : "int8[")) << variable.type;
  for (const Build& method : both.methods) {
    for (const Diagnostic& warning : method.warnings)
      EXPECT_EQ(warning.message.find("other codes"), std::string::npos) << warning.message;
  }
  const auto state = stateOf(both.program);
  EXPECT_EQ(state[0], state[1]);
  EXPECT_EQ(state[0].size(), 4u);
  EXPECT_EQ(both.program.methods[0].pools[2], one.program.methods[0].pools[2]);
  if (GetParam() != "cpu") return;
  const auto large = pte::writeProgram(both.program), small = pte::writeProgram(one.program);
  EXPECT_LT(large->size(), small->size() * 5 / 4);
}

TEST_P(Methods, ShareTheWeightsOfTheNpu) {
  if (GetParam() == "cpu") return;
  const auto both = require(buildLanguage(GetParam()));
  // Weights are equal; each method has its own scales and biases, and its own weights where blocks differ.
  ASSERT_TRUE(both.sharesNpuConstants());
  EXPECT_LT(both.npuConstants.together, both.npuConstants.apart * 5 / 7);
  ASSERT_EQ(both.program.namedData.size(), 1u);
  const pte::NamedData& constants = both.program.namedData.front();
  EXPECT_EQ(static_cast<int64_t>(constants.bytes.size()), both.npuConstants.together);
  for (const pte::Method& method : both.program.methods) {
    for (const pte::Delegate& delegate : method.delegates) {
      const auto blob = require(pte::parseDelegateBlob(delegate.blob));
      EXPECT_EQ(blob.constantsKey, constants.key);
      EXPECT_TRUE(blob.constants.empty());
    }
  }
  Options options;
  options.target = GetParam();
  const auto profiled = require(profileProgram(write(both), options));
  EXPECT_EQ(measuredOf(profiled).sram, measuredOf(both, std::nullopt).sram);
  const auto streams = require(commandStreams(write(both)));
  for (const CommandStream& stream : streams) EXPECT_EQ(stream.constants, constants.bytes);
  const auto check = checkProgram(asBytes(*pte::writeProgram(both.program)));
  ASSERT_TRUE(check.ok() && check->ok());
}

TEST_P(Methods, QuantizationOfEveryMethodIsRecorded) {
  if (GetParam() == "cpu") return;
  std::vector<NamedTensors> outputs;
  for (const ProgramIo io : {ProgramIo::Float, ProgramIo::Int8}) {
    const auto built = require(buildBuffer(GetParam(), io));
    const bool known = io == ProgramIo::Int8;
    EXPECT_EQ(codesOf(built.program, "write").inputs[0].scale.has_value(), known);
    EXPECT_EQ(codesOf(built.program, "read").outputs[0].scale.has_value(), known);
    EXPECT_EQ(built.program.findMethod("read_output0_scale") != nullptr, known);
    RunOptions options;
    options.file = write(built);
    options.dequantize = true;
    const auto call = [](const char* method) {
      const NamedTensors arrays = methodArrays(fmt::format("{}.npz", method));
      return MethodInputs{method, "", {{"in0", slice(*findTensor(arrays, "calib0"), 0)}}};
    };
    const auto sequence = require(runMethods(options, std::vector{call("write"), call("read")}));
    outputs.push_back(sequence.outputs);
    options.method = "read";
    const auto one = require(runFile(options, call("read").arrays));
    outputs.back().emplace_back("alone", one.outputs[0].second);
  }
  ASSERT_EQ(outputs[0].size(), outputs[1].size());
  for (size_t i = 0; i < outputs[0].size(); ++i) EXPECT_EQ(outputs[0][i].second, outputs[1][i].second) << i;
}

TEST_P(Methods, PromptGoesThroughPrefill) {
  const auto both = require(buildLanguage(GetParam())), one = require(buildLanguage(GetParam(), false));
  for (const char* prompt : {"GN", "GNU", "GNU GEN", "The GNU "}) {
    SCOPED_TRACE(prompt);
    const auto fast = require(generateFrom(both, prompt)), slow = require(generateFrom(one, prompt));
    const size_t tokens = fast.promptTokens.size();
    ASSERT_TRUE(fast.prefill.has_value());
    EXPECT_EQ(fast.prefill->tokens, 4);
    EXPECT_EQ(fast.prefill->calls, tokens / 4);
    EXPECT_EQ(fast.prompting.calls, tokens % 4);
    EXPECT_FALSE(slow.prefill.has_value());
    EXPECT_EQ(slow.prompting.calls, tokens);
    EXPECT_EQ(fast.tokens.size(), slow.tokens.size());
    // Scales of activations differ between the methods: only the float network chooses the same tokens.
    if (GetParam() == "cpu") {
      EXPECT_EQ(fast.tokens, slow.tokens);
    }
    if (GetParam() != "cpu" && fast.prefill->calls > 0) {
      EXPECT_GT(fast.prefill->npuCycles, 0);
      EXPECT_TRUE(fast.prefill->time.has_value());
      EXPECT_LT(fast.prefill->npuCycles / static_cast<int64_t>(fast.prefill->calls),
                4 * fast.writing.npuCycles / static_cast<int64_t>(fast.writing.calls));
    }
  }
  EXPECT_NE(errorOf(generateFrom(both, "sixteen letters.")).find("has 17 tokens, the context 16"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Targets, Methods, testing::Values("cpu", "ethos-u85-256", "ethos-u55-128"),
                         [](const auto& target) {
                           std::string name = target.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// The decoder of models/, whose weights reach the multipliers in one and in several slices, with and without
/// copies: two methods take at most a third more memory than one, at up to 3 % more cycles. On ethos-u65-512,
/// where all weights in one order would slow 16 tokens down by more than that, they take up to two thirds
/// more.
TEST(MethodWeights, AreStoredOnceOnEveryFamily) {
  for (const char* target : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-512"}) {
    Options options;
    options.target = target;
    const MethodSource decode{"decode", test::modelFile("language.pt2"), test::modelFile("language.npz")};
    const MethodSource prefill{"prefill", test::modelFile("language_prefill.pt2"),
                               test::modelFile("language_prefill.npz")};
    const auto both = require(buildMethods(options, std::vector{decode, prefill}));
    const bool inDram = std::string(target) == "ethos-u65-512";
    EXPECT_LT(both.npuConstants.together, both.npuConstants.apart * (inDram ? 10 : 8) / 12) << target;
    for (const bool first : {true, false}) {
      const auto one = require(buildMethods(options, std::vector{first ? decode : prefill}));
      const compiler::CompiledProgram& alone = one.methods[0].compiled.front();
      const compiler::CompiledProgram& shared = both.methods[first ? 0 : 1].compiled.front();
      EXPECT_LE(shared.cycles * 100, alone.cycles * 103) << target;
    }
  }
}

class MethodErrors : public testing::Test {
 protected:
  static void expect(const std::vector<MethodSource>& sources, const std::string& target,
                     std::string_view says, std::string_view of = "") {
    Options options;
    options.target = target;
    options.constantMethods = {{"size", 3}};
    const std::string error = errorOf(buildMethods(options, sources));
    EXPECT_NE(error.find(says), std::string::npos) << error;
    EXPECT_NE(error.find(of), std::string::npos) << error;
  }
};

TEST_F(MethodErrors, NameTheMethod) {
  MethodSource narrow{"narrow", methodFile("narrow.pt2"), {}};
  expect({sourceOf("read", "cpu"), narrow}, "cpu", "the state 'm.memory' is float32[1,16] in one method",
         "narrow.pt2");
  expect({sourceOf("read", "cpu"), sourceOf("read", "cpu")}, "cpu", "'read' is the name of another method");
  expect({{"", methodFile("read.pt2"), {}}}, "cpu", "'' is the name of another method");
  expect({{"size", methodFile("read.pt2"), {}}}, "cpu", "'size' is the name of another method");
  expect({{"read", methodFile("nothing.pt2"), {}}}, "cpu", "nothing.pt2");
  expect({{"read", methodFile("read.npz"), {}}}, "cpu", "methods are compiled from .pt2 archives",
         "read.npz");
  expect({sourceOf("write", "ethos-u55-128"), {"read", methodFile("read.pt2"), {}}}, "ethos-u55-128",
         "there is no calibration data", "read.pt2");
  expect({sourceOf("write", "cpu")}, "ethos-u99", "--target");
}

TEST_F(MethodErrors, SequencesOfMissingMethods) {
  const auto built = require(buildBuffer("cpu"));
  const test::TempDir folder;
  require(writeFile(folder / "program.pte", require(pte::writeProgram(built.program))));
  RunOptions options;
  options.file = folder / "program.pte";
  const auto says = [&](const std::vector<MethodInputs>& calls, std::string_view text) {
    const std::string error = errorOf(runMethods(options, calls));
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  says({{"forward", "", {}}}, "method forward");
  says({{"read", "read.npz", {}}}, "in0");
  options.resetState = ResetState::Each;
  says({{"reset", "", {}}}, "--reset-state");
  options.resetState = ResetState::Never;
  options.file = methodFile("read.pt2");
  says({{"reset", "", {}}}, "is for .pte programs only");
}

TEST_F(MethodErrors, SeparateStateIsWarnedAbout) {
  Options options;
  options.target = "cpu";
  const auto folder = test::dataDir();
  const auto built =
      require(buildMethods(options, std::vector<MethodSource>{{"a", folder / "state" / "recurrent.pt2", {}},
                                                              {"b", folder / "state" / "blocks.pt2", {}}}));
  EXPECT_TRUE(built.shared.empty());
  ASSERT_EQ(built.warnings.size(), 1u);
  EXPECT_NE(built.warnings[0].message.find("share none"), std::string::npos);
}

}  // namespace
}  // namespace carina::pipeline
