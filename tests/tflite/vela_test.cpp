// SPDX-License-Identifier: Apache-2.0
// Compiled TFLite files: operators, memory plan, and what is refused.
#include "tflite/vela.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "support/require.hpp"
#include "tflite/file_builder.hpp"

namespace carina::tflite {
namespace {

using test::npuFile;
using test::TfliteFile;
using testing::HasSubstr;

TfliteFile compiled() {
  return npuFile("COP1", "weights", 256, 16, 32, 8, 64);
}

struct Opened {
  std::string bytes;
  Model model;
};
Opened open(const TfliteFile& file) {
  Opened opened{file.bytes(), {}};
  auto model = require(readModel(asBytes(opened.bytes)));
  opened.model = std::move(model);
  return opened;
}

void expectRefused(const TfliteFile& file, const std::string& why) {
  const Opened opened = open(file);
  EXPECT_THAT(errorOf(npuProgram(opened.model)), HasSubstr(why)) << why;
}

TEST(TfliteVela, FindsTheOperatorAndItsMemory) {
  const Opened opened = open(compiled());
  const auto program = require(npuProgram(opened.model));
  EXPECT_EQ(program.arenaBytes, 256u);
  EXPECT_EQ(program.main().offsets[4], 32u);
  EXPECT_EQ(program.main().offsets[1], std::nullopt);
  ASSERT_EQ(program.calls.size(), 1u);
  EXPECT_EQ(asText(program.calls[0].payload), "COP1");
  EXPECT_EQ(asText(program.calls[0].constants), "weights");
  EXPECT_EQ(program.calls[0].inputs, std::vector<int32_t>{4});
  EXPECT_TRUE(program.sharesScratch(program.calls[0]));
}

TEST(TfliteVela, FastScratchOfAnotherSizeIsSeparateMemory) {
  TfliteFile file = compiled();
  file.tensors[3].shape = {128};
  const Opened opened = open(file);
  const auto program = require(npuProgram(opened.model));
  EXPECT_FALSE(program.sharesScratch(program.calls[0]));
}

TEST(TfliteVela, OtherOperatorsAreStepsWithoutCalls) {
  TfliteFile file = compiled();
  file.tensors.push_back({"z", TensorType::Int8, {1, 8}, "", 96});
  file.operators.push_back({"", 25, {5}, {6}});
  file.outputs = {6};
  const Opened opened = open(file);
  const auto program = require(npuProgram(opened.model));
  ASSERT_EQ(program.main().steps.size(), 2u);
  EXPECT_TRUE(program.main().steps[0].isCall);
  EXPECT_FALSE(program.main().steps[1].isCall);
  EXPECT_EQ(program.main().steps[1].index, 1u);
  EXPECT_EQ(program.calls.size(), 1u);
  EXPECT_EQ(program.main().offsets[6], 96u);
}

TEST(TfliteVela, AModelThatIsNotCompiledHasNoCalls) {
  TfliteFile file = compiled();
  file.operators = {{"", 3, {4}, {5}}, {"", 3, {5}, {5}}, {"", 25, {5}, {5}}};
  const Opened opened = open(file);
  EXPECT_TRUE(npuCalls(opened.model).empty());
  const auto program = require(npuProgram(opened.model));
  EXPECT_TRUE(program.calls.empty());
  EXPECT_EQ(program.main().steps.size(), 3u);
}

TEST(TfliteVela, RefusesPlansThatContradictTheModel) {
  TfliteFile file = compiled();
  file.planEntries = 7;
  expectRefused(file, "7 entries");
  file.planEntries = -1;
  expectRefused(file, "-1 entries");
  file = compiled();
  file.tensors[2].shape = {INT32_MAX, INT32_MAX};
  expectRefused(file, "needs");
  file = compiled();
  file.tensors[2].shape = {INT32_MAX, INT32_MAX, INT32_MAX};
  expectRefused(file, "sizes must be known");
  file = compiled();
  file.tensors[5].offset = INT32_MAX;
  file.tensors[5].shape = {1 << 30};
  expectRefused(file, "at most 2 GiB");
  file = compiled();
  file.tensors[5].type = TensorType::String;
  expectRefused(file, "string");
  file = compiled();
  file.tensors[4].data = "short";
  expectRefused(file, "5 are stored");
  file = compiled();
  file.tensors[0].data.clear();
  expectRefused(file, "the command stream");
  file = compiled();
  file.operators[0].inputs = {0, 1, 2};
  expectRefused(file, "takes a command stream");
  file = compiled();
  file.plan = false;
  file.tensors[2].shape = file.tensors[3].shape = {0x7fffffff};
  expectRefused(file, "outside the memory plan");
}

}  // namespace
}  // namespace carina::tflite
