// SPDX-License-Identifier: Apache-2.0
// Programs whose NPU parts are TOSA graphs: compiling them at load and compiling them ahead produces the same
// programs.
#include "delivery/at_load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "at_load_client.h"
#include "base/file.hpp"
#include "base/npy.hpp"
#include "delivery/delegate.hpp"
#include "pipeline/check.hpp"
#include "pipeline/delivered.hpp"
#include "pipeline/loaded_program.hpp"
#include "pipeline/methods.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/run.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"
#include "tosa/tosa.hpp"
#include "tosa_io/tosa_writer.hpp"

namespace carina::delivery {
namespace {

/// The program file of the repository's network `name`.
std::string programOf(const std::string& name, const std::string& target, pipeline::Delivery delivery) {
  const test::TempDir folder;
  pipeline::Options options;
  options.model = test::modelFile(name + ".pt2");
  options.calibration = test::modelFile(name + ".npz");
  options.target = target;
  options.delivery = delivery;
  const auto build = require(pipeline::build(options));
  EXPECT_TRUE(pipeline::writeOutput(build, folder / "x.pte").ok());
  return std::string(asText((*MappedFile::open(folder / "x.pte"))->bytes()));
}

pte::Program read(const std::string& bytes) {
  return require(pte::readProgram(asBytes(bytes)));
}

TEST(Delivered, ProgramFileEqualsTheWrittenFile) {
  const test::TempDir folder;
  for (const auto delivery : {pipeline::Delivery::Compiled, pipeline::Delivery::Tosa}) {
    pipeline::Options options;
    options.model = test::modelFile("mixed.pt2");
    options.calibration = test::modelFile("mixed.npz");
    options.target = "ethos-u55-128";
    options.delivery = delivery;
    const auto build = require(pipeline::build(options));
    const auto program = require(pipeline::programFile(build));
    ASSERT_TRUE(pipeline::writeOutput(build, folder / "x.pte").ok());
    EXPECT_EQ(asText((*MappedFile::open(folder / "x.pte"))->bytes()), program);
    EXPECT_EQ(hasTosaParts(read(program)), delivery == pipeline::Delivery::Tosa);
    EXPECT_EQ(*pipeline::programBytes(build), static_cast<int64_t>(program.size()));
  }
}

class AtLoadOf : public testing::TestWithParam<const char*> {};

TEST_P(AtLoadOf, ProducesTheBytesOfCompilingAhead) {
  const std::string ahead = programOf("mixed", GetParam(), pipeline::Delivery::Compiled);
  pte::Program program = read(programOf("mixed", GetParam(), pipeline::Delivery::Tosa));
  ASSERT_TRUE(hasTosaParts(program));
  EXPECT_FALSE(hasTosaParts(read(ahead)));
  const auto done = require(compileTosaParts(program, {}));
  EXPECT_EQ(done.target, GetParam());
  EXPECT_EQ(done.parts, 1u);
  EXPECT_EQ(*pte::writeProgram(program), ahead);
}

INSTANTIATE_TEST_SUITE_P(Targets, AtLoadOf,
                         testing::Values("ethos-u55-128", "ethos-u65-256", "ethos-u85-256"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(AtLoad, CompilesForTheNpuThatIsPresent) {
  const std::string ahead = programOf("digits8", "ethos-u55-64", pipeline::Delivery::Compiled);
  pte::Program program = read(programOf("digits8", "ethos-u85-256", pipeline::Delivery::Tosa));
  ASSERT_TRUE(compileTosaParts(program, {"ethos-u55-64", "", "", {}, std::nullopt}).ok());
  EXPECT_EQ(*pte::writeProgram(program), ahead);
}

/// A floating-point graph with the input and output types of a part: 2 * x + 1 of the first elements.
std::string floatGraph(const pipeline::Build& build) {
  const ir::Graph& part = build.partitioned.delegates.at(0).tosa;
  const ir::Type in = part.inputs()[0]->type, out = part.outputs()[0]->type;
  ir::Graph graph("floats");
  ir::Builder b(graph);
  ir::Value* x = graph.addInput(in, "x");
  const auto shape = [&](const Shape& values) {
    Tensor tensor = Tensor::uninitialized(DType::Shape, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) tensor.setIntegerAt(static_cast<int64_t>(i), values[i]);
    return b.constant(std::move(tensor));
  };
  ir::Value* flat = tosa::Reshape::create(b, x, shape({numElements(in.shape)})).output();
  ir::Value* cut = tosa::Slice::create(b, flat, shape({0}), shape({numElements(out.shape)})).output();
  ir::Value* real = tosa::Cast::create(b, cut, {ir::Type{DType::Float32, cut->shape()}}).output();
  const auto number = [&](float value) { return b.constant(Tensor::from<float>({1}, {value})); };
  ir::Value* doubled = tosa::Add::create(b, real, real).output();
  ir::Value* more = tosa::Add::create(b, doubled, number(1)).output();
  ir::Value* codes = tosa::Cast::create(b, more, {ir::Type{DType::Int8, more->shape()}}).output();
  graph.setOutputs({tosa::Reshape::create(b, codes, shape(out.shape)).output()});
  return *tosa_io::writeTosa(graph);
}

TEST(AtLoad, FloatGraphsRunInTheInterpreter) {
  pipeline::Options options;
  options.model = test::modelFile("digits8.pt2");
  options.calibration = test::modelFile("digits8.npz");
  options.target = "ethos-u85-256";
  options.delivery = pipeline::Delivery::Tosa;
  options.inputs = options.outputs = pipeline::ProgramIo::Int8;
  const auto build = require(pipeline::build(options));
  pte::Program program = read(*pipeline::programFile(build));
  const std::string graph = floatGraph(build);
  program.methods[0].delegates[0].blob.assign(asBytes(graph).begin(), asBytes(graph).end());
  // It cannot be compiled.
  pte::Program ahead = program;
  EXPECT_THAT(errorOf(compileTosaParts(ahead, {})), testing::HasSubstr("the NPU computes with integers"));

  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "x.pte", *pte::writeProgram(program)).ok());
  pipeline::RunOptions run;
  run.file = folder / "x.pte";
  run.raw = true;
  Tensor input = Tensor::uninitialized(DType::Int8, build.graph().inputs()[0]->shape());
  for (int64_t i = 0; i < input.numElements(); ++i) input.setIntegerAt(i, i - 30);
  const auto ran = require(pipeline::runFile(run, {{"in0", input}}));
  ASSERT_TRUE(ran.atLoad);
  EXPECT_EQ(ran.atLoad->parts, 0u);
  EXPECT_EQ(ran.atLoad->inFloat, 1u);
  const Tensor& output = ran.outputs.at(0).second;
  for (int64_t i = 0; i < output.numElements(); ++i) EXPECT_EQ(output.integerAt(i), 2 * (i - 30) + 1);

  // From C, where a backend of the application runs it.
  const std::string bytes = *pte::writeProgram(program);
  std::vector<int8_t> results(static_cast<size_t>(output.numElements()));
  char message[512] = "";
  EXPECT_EQ(run_floats_from_c(bytes.data(), bytes.size(), input.bytes().data(), input.bytes().size(),
                              results.data(), results.size(), message),
            0)
      << message;
  EXPECT_STREQ(message, "");
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], 2 * (static_cast<int>(i) - 30) + 1);
  carina_compiled compiled;
  EXPECT_EQ(compile_from_c(bytes.data(), bytes.size(), nullptr, nullptr, &compiled), 1);
  EXPECT_THAT(compiled.message, testing::HasSubstr("the NPU computes with integers"));
  carina_compiled_release(&compiled);
}

/// Constants that the graphs of several methods share are stored once, and put back into the graphs when
/// these are compiled.
TEST(AtLoad, MethodsShareConstants) {
  const auto folder = test::dataDir() / "language";
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    SCOPED_TRACE(target);
    pipeline::Options options;
    options.target = target;
    options.delivery = pipeline::Delivery::Tosa;
    options.constantMethods = {{"get_max_context_len", 16}};
    const pipeline::MethodSource sources[] = {
        {"prefill", folder / "language_prefill.pt2", folder / "language_prefill.npz"},
        {"decode", folder / "language.pt2", folder / "language.npz"}};
    const auto build = require(pipeline::buildMethods(options, sources));
    const auto delivered = require(pipeline::programFile(build));
    pte::Program program = read(delivered);
    size_t graphs = 0, apart = 0;
    for (size_t m = 0; m < build.methods.size(); ++m) {
      graphs += program.methods[m].delegates[0].blob.size();
      apart += tosa_io::writeTosa(build.methods[m].partitioned.delegates[0].tosa)->size();
    }
    size_t constants = 0;
    for (const pte::ByteVector& bytes : program.constants) constants += bytes.size();
    EXPECT_GT(constants, 1000u);
    EXPECT_LT(graphs + constants, apart);
    // The commands are those of each method compiled alone.
    require(compileTosaParts(program, {}));
    for (size_t m = 0; m < build.methods.size(); ++m) {
      pte::Delegate alone = *tosaDelegate(build.methods[m].partitioned.delegates[0].tosa,
                                          settingsOf(*build.methods[m].machine, false));
      pte::Program one;
      one.methods.emplace_back().delegates.push_back(std::move(alone));
      ASSERT_TRUE(compileTosaParts(one, {}).ok());
      EXPECT_EQ(program.methods[m].delegates[0].blob, one.methods[0].delegates[0].blob);
    }
    size_t left = 0;
    for (const pte::ByteVector& bytes : program.constants) left += bytes.size();
    EXPECT_LT(left, 1000u) << "they are among the NPU's constants";
    EXPECT_TRUE(pte::readProgram(asBytes(*pte::writeProgram(program))).ok());
  }
}

TEST(AtLoad, UsesCachedBlobs) {
  const test::TempDir folder;
  const std::string bytes = programOf("mixed", "ethos-u85-256", pipeline::Delivery::Tosa);
  const LoadOptions options{"", "", "", {}, folder / "cache"};
  std::string programs[3];
  const size_t expected[] = {0, 1, 0};
  for (size_t i = 0; i < 3; ++i) {
    if (i == 2) {  // a damaged entry is recompiled, reported and replaced
      for (const auto& entry : std::filesystem::directory_iterator(folder / "cache"))
        std::filesystem::resize_file(entry.path(), 100);
    }
    pte::Program program = read(bytes);
    const auto done = require(compileTosaParts(program, options));
    EXPECT_EQ(done.fromCache, expected[i]);
    EXPECT_EQ(done.warnings.size(), i == 2 ? 1u : 0u);
    programs[i] = *pte::writeProgram(program);
  }
  EXPECT_EQ(programs[0], programs[1]);
  EXPECT_EQ(programs[0], programs[2]);
  pte::Program program = read(bytes);
  EXPECT_EQ(compileTosaParts(program, options)->fromCache, 1u);
  program = read(bytes);
  EXPECT_EQ(compileTosaParts(program, {"ethos-u85-512", "", "", {}, folder / "cache"})->fromCache, 0u);
}

TEST(AtLoad, ContinuesIfTheCacheCannotBeWritten) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "file", std::string_view("in the way")).ok());
  pte::Program program = read(programOf("mixed", "ethos-u85-256", pipeline::Delivery::Tosa));
  const auto done = require(compileTosaParts(program, {"", "", "", {}, folder / "file" / "cache"}));
  ASSERT_EQ(done.warnings.size(), 1u);
  EXPECT_NE(done.warnings[0].message.find("cannot be cached"), std::string::npos);
}

TEST(AtLoad, ErrorsNamePartAndReason) {
  pte::Program program = read(programOf("mixed", "ethos-u85-256", pipeline::Delivery::Tosa));
  for (pte::CompileSpec& spec : program.methods[0].delegates[0].specs) spec.value.clear();
  auto done = compileTosaParts(program, {});
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().str().find("method forward, NPU part 0"), std::string::npos) << done.error().str();
  EXPECT_NE(done.error().str().find("--target"), std::string::npos) << done.error().str();
  program.methods[0].delegates[0].blob.resize(40);
  done = compileTosaParts(program, {"ethos-u85-256", "", "", {}, std::nullopt});
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().str().find("method forward, NPU part 0"), std::string::npos) << done.error().str();
}

TEST(AtLoad, OutputsEqualThoseOfCompilingAhead) {
  const test::TempDir folder;
  std::vector<NamedTensors> outputs;
  for (const auto delivery : {pipeline::Delivery::Compiled, pipeline::Delivery::Tosa}) {
    ASSERT_TRUE(
        writeFile(folder / "x.pte", std::string_view(programOf("mobile", "ethos-u55-128", delivery))).ok());
    pipeline::RunOptions options;
    options.file = folder / "x.pte";
    auto result = require(pipeline::runFile(options, *readArrays(test::modelFile("mobile.npz"))));
    EXPECT_EQ(result.atLoad.has_value(), delivery == pipeline::Delivery::Tosa);
    outputs.push_back(std::move(result.outputs));
  }
  ASSERT_EQ(outputs[0].size(), outputs[1].size());
  for (size_t i = 0; i < outputs[0].size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(outputs[0][i].second.bytes(), outputs[1][i].second.bytes()));
  }
}

TEST(AtLoad, CheckJudgesTheCompiledProgram) {
  const std::string bytes = programOf("mixed", "ethos-u55-128", pipeline::Delivery::Tosa);
  const auto check = require(pipeline::checkProgram(asBytes(bytes)));
  EXPECT_TRUE(check.ok()) << check.problems[0];
  EXPECT_EQ(check.commandStreams, 1u);
  EXPECT_EQ(check.atLoad->target, "ethos-u55-128");
  EXPECT_EQ(check.fileBytes, static_cast<int64_t>(bytes.size()));
}

TEST(AtLoad, RequiresAnEthosU) {
  for (const char* target : {"cpu", "ethos-n78-4tops-4ple"}) {
    pipeline::Options options;
    options.model = test::modelFile("mixed.pt2");
    options.target = target;
    options.delivery = pipeline::Delivery::Tosa;
    EXPECT_THAT(errorOf(pipeline::build(options)), testing::HasSubstr("--deliver"));
  }
}

TEST(AtLoadFromC, CompilesAndReleases) {
  const test::TempDir folder;
  const std::string ahead = programOf("mixed", "ethos-u85-256", pipeline::Delivery::Compiled);
  const std::string bytes = programOf("mixed", "ethos-u85-256", pipeline::Delivery::Tosa);
  const std::string cache = (folder / "cache").string();
  for (size_t i = 0; i < 2; ++i) {
    carina_compiled compiled;
    ASSERT_EQ(compile_from_c(bytes.data(), bytes.size(), nullptr, cache.c_str(), &compiled), 0)
        << compiled.message;
    EXPECT_EQ(std::string_view(static_cast<const char*>(compiled.program), compiled.size), ahead);
    EXPECT_EQ(compiled.parts, 1u);
    EXPECT_EQ(compiled.from_cache, i);
    EXPECT_STREQ(compiled.message, "");
    carina_compiled_release(&compiled);
    EXPECT_EQ(compiled.program, nullptr);
  }
  carina_compiled compiled;
  EXPECT_EQ(compile_from_c(ahead.data(), ahead.size(), nullptr, nullptr, &compiled), 0);
  EXPECT_EQ(compiled.parts, 0u);
  carina_compiled_release(&compiled);
  EXPECT_EQ(compile_from_c(bytes.data(), bytes.size(), "ethos-u86", nullptr, &compiled), 1);
  EXPECT_NE(std::string_view(compiled.message).find("ethos-u86"), std::string_view::npos) << compiled.message;
  EXPECT_EQ(compiled.program, nullptr);
  EXPECT_EQ(compile_from_c("nothing", 7, nullptr, nullptr, &compiled), 1);
  EXPECT_STRNE(compiled.message, "");
}

}  // namespace
}  // namespace carina::delivery
