// SPDX-License-Identifier: Apache-2.0
// Networks with subgraphs, run operator by operator: the state they keep, and errors in them.
#include "tflite/control_flow.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "device/tflite_runner.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "tflite/schema.hpp"

namespace carina {
namespace {

using device::TfliteRunner;
using testing::ElementsAre;
using testing::HasSubstr;

/// A network of tests/data/tflite_mixed, to be modified.
std::unique_ptr<tflite::fb::RootT> network(const std::string& name) {
  const auto file = require(MappedFile::open(test::dataDir() / "tflite_mixed" / (name + ".tflite")));
  return std::unique_ptr<tflite::fb::RootT>(tflite::fb::GetRoot(file->bytes().data())->UnPack());
}

std::string bytesOf(const tflite::fb::RootT& root) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(tflite::fb::Root::Pack(builder, &root), "TFL3");
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

/// The error of opening the network.
std::string problemOf(const tflite::fb::RootT& root) {
  const std::string bytes = bytesOf(root);
  return errorOf(TfliteRunner::open(asBytes(bytes)));
}

std::vector<Tensor> turnsInputs(int32_t count) {
  return {Tensor::from({1}, std::vector<int32_t>{count}), Tensor::from({1, 16}, std::vector<int8_t>(16, 7))};
}

TEST(TfliteControlFlow, FindsTheSubgraphsThatRun) {
  const std::string bytes = bytesOf(*network("remembered"));
  const auto model = require(tflite::readModel(asBytes(bytes)));
  const auto running = require(tflite::runningSubgraphs(model));
  EXPECT_THAT(running, ElementsAre(0, 1, 2, 3, 4));
}

TEST(TfliteControlFlow, UnusedSubgraphsNeedNotRun) {
  auto root = network("branches");
  auto unused = std::make_unique<tflite::fb::SubgraphEntryT>(*root->subgraphs[1]);
  unused->operators[0]->code = 99;
  unused->operators.clear();
  root->subgraphs.push_back(std::move(unused));
  EXPECT_EQ(problemOf(*root), "");
}

TEST(TfliteControlFlow, SubgraphsThatRunThemselvesAreRefused) {
  auto root = network("turns");
  auto& body = *root->subgraphs[2];
  // The body runs the loop again.
  body.operators.push_back(std::make_unique<tflite::fb::OperatorEntryT>(*root->subgraphs[0]->operators[1]));
  body.operators.back()->inputs = body.inputs;
  body.operators.back()->outputs = body.outputs;
  EXPECT_THAT(problemOf(*root), HasSubstr("subgraph 2 is recursive"));
}

TEST(TfliteControlFlow, SubgraphsThatDoNotExistAreRefused) {
  auto root = network("turns");
  root->subgraphs[0]->operators[1]->builtin_options.AsWhileOptions()->body_subgraph_index = 3;
  EXPECT_THAT(problemOf(*root),
              HasSubstr("operator 1 (WHILE) of subgraph 0 runs subgraph 3, but there are 3"));
  root->subgraphs[0]->operators[1]->builtin_options.AsWhileOptions()->body_subgraph_index = -1;
  EXPECT_THAT(problemOf(*root), HasSubstr("runs subgraph -1"));
}

TEST(TfliteControlFlow, SubgraphsWithAnotherSignatureAreRefused) {
  auto root = network("turns");
  root->subgraphs[2]->inputs.pop_back();
  EXPECT_THAT(problemOf(*root), HasSubstr("values with subgraph 2"));
  root = network("turns");
  root->subgraphs[1]->tensors[static_cast<size_t>(root->subgraphs[1]->inputs[1])]->shape = {1, 8};
  EXPECT_THAT(problemOf(*root), HasSubstr("of subgraph 1 is int8[1,8]"));
  root = network("turns");
  root->subgraphs[1]->outputs = {root->subgraphs[1]->inputs[0]};
  EXPECT_THAT(problemOf(*root), HasSubstr("not a single bool"));
  root = network("sides");
  root->subgraphs[0]->operators[1]->inputs.clear();
  EXPECT_THAT(problemOf(*root), HasSubstr("it has no condition"));
}

/// Nested subgraphs: at most 64 levels, and each subgraph is visited once.
TEST(TfliteControlFlow, DepthIsLimited) {
  const auto nested = [](size_t depth) {
    tflite::Model model;
    model.subgraphs.resize(depth);
    for (size_t g = 0; g + 1 < depth; ++g) {
      tflite::Operator op;
      op.name = "IF";
      op.options = {{"then_subgraph_index", static_cast<double>(g + 1), {}, {}},
                    {"else_subgraph_index", static_cast<double>(g + 1), {}, {}}};
      model.subgraphs[g].operators = {op, op};
    }
    return tflite::runningSubgraphs(model);
  };
  ASSERT_TRUE(nested(64).ok());
  EXPECT_EQ(nested(64)->size(), 64u);
  ASSERT_FALSE(nested(65).ok());
  EXPECT_THAT(nested(65).error().str(), HasSubstr("more than 64 deep"));
}

/// A loop that never ends stops at the work limit for a file of its size.
TEST(TfliteControlFlow, EndlessLoopsAreStopped) {
  auto root = network("turns");
  // The condition returns a constant, which is always true.
  auto& condition = *root->subgraphs[1];
  auto& answer = *condition.tensors[static_cast<size_t>(condition.outputs[0])];
  answer.buffer = static_cast<uint32_t>(root->buffers.size());
  root->buffers.push_back(std::make_unique<tflite::fb::BufferEntryT>());
  root->buffers.back()->data = {1};
  condition.operators.clear();
  const std::string bytes = bytesOf(*root);
  auto runner = require(TfliteRunner::open(asBytes(bytes)));
  EXPECT_THAT(errorOf(runner.run(turnsInputs(1))), HasSubstr("--trusted"));
}

TEST(TfliteControlFlow, LoopsRunWhileTheirConditionHolds) {
  const std::string bytes = bytesOf(*network("turns"));
  auto runner = require(TfliteRunner::open(asBytes(bytes)));
  for (const int32_t count : {0, 1, 5}) {
    const auto outcome = require(runner.run(turnsInputs(count)));
    EXPECT_EQ(outcome.outputs[1].integerAt(0), 0);
    EXPECT_EQ(std::count(outcome.stats.kernels.begin(), outcome.stats.kernels.end(), "tfl.DIV"), count);
  }
}

TEST(TfliteControlFlow, VariablesLastUntilTheyAreReset) {
  const std::string bytes = bytesOf(*network("remembered"));
  auto runner = require(TfliteRunner::open(asBytes(bytes)));
  const std::vector<Tensor> inputs = {Tensor::zeros(DType::Bool, {1}),
                                      Tensor::from({1, 16}, std::vector<int8_t>(16, 50))};
  const auto first = require(runner.run(inputs)), second = require(runner.run(inputs));
  EXPECT_NE(first.outputs[0], second.outputs[0]);
  runner.reset();
  const auto again = require(runner.run(inputs));
  EXPECT_EQ(first.outputs[0], again.outputs[0]);
}

TEST(TfliteControlFlow, VariablesKeepTheirSize) {
  auto root = network("remembered");
  auto& first = *root->subgraphs[1];
  auto& value = *first.tensors[static_cast<size_t>(first.operators[1]->inputs[1])];
  value.shape = {1, 8};
  const std::string bytes = bytesOf(*root);
  auto runner = require(TfliteRunner::open(asBytes(bytes)));
  EXPECT_THAT(errorOf(runner.run(
                  std::vector<Tensor>{Tensor::zeros(DType::Bool, {1}), Tensor::zeros(DType::Int8, {1, 16})})),
              HasSubstr("holds 16 bytes, but the operator expects 8"));
}

}  // namespace
}  // namespace carina
