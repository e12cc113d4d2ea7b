// SPDX-License-Identifier: Apache-2.0
// The complete search on small networks: programs meet the goals when measured, or goals are reported as out
// of reach.
#include "precision/auto_precision.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/npy.hpp"
#include "pipeline/float_network.hpp"
#include "pipeline/verify.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::precision {
namespace {

using test::modelFile;

pipeline::Options optionsFor(const std::string& network) {
  pipeline::Options options;
  options.model = modelFile(network + ".pt2");
  options.calibration = modelFile(network + ".npz");
  options.target = "ethos-u55-128";
  return options;
}

AutoPrecision found(const pipeline::Options& options, const Goal& goal) {
  return require(autoPrecision(options, goal));
}

const Row& rowNamed(const AutoPrecision& result, const std::string& name) {
  const auto row = std::find_if(result.rows.begin(), result.rows.end(),
                                [&](const Row& each) { return each.name == name; });
  EXPECT_NE(row, result.rows.end()) << name;
  return *row;
}

const Row& chosenRow(const AutoPrecision& result) {
  const auto row =
      std::find_if(result.rows.begin(), result.rows.end(), [](const Row& each) { return each.chosen; });
  EXPECT_NE(row, result.rows.end());
  return *row;
}

TEST(AutoPrecision, ChoosesInt8IfThatSuffices) {
  Goal goal;
  goal.minSqnr = 20;
  const AutoPrecision result = found(optionsFor("residual"), goal);
  ASSERT_TRUE(result.build);
  EXPECT_EQ(chosenRow(result).name, "int8");
  EXPECT_FALSE(result.gap);
}

TEST(AutoPrecision, IntermediateGoalsCostLessThanSixteenBits) {
  Goal goal;
  goal.minSqnr = 20;
  const AutoPrecision ends = found(optionsFor("residual"), goal);
  const Row low = rowNamed(ends, "int8"), high = rowNamed(ends, "16x8");
  ASSERT_GT(high.decibels, low.decibels + 6);
  ASSERT_GT(high.cycles, low.cycles);
  goal.minSqnr = (low.decibels + high.decibels) / 2;
  const AutoPrecision result = found(optionsFor("residual"), goal);
  ASSERT_TRUE(result.build);
  const Row& chosen = chosenRow(result);
  EXPECT_GE(chosen.decibels, *goal.minSqnr);
  EXPECT_LT(chosen.cycles, high.cycles);
  EXPECT_GT(chosen.raised, 0u);
  ASSERT_TRUE(result.gap);
  EXPECT_GE(*result.gap, 0);
  EXPECT_LT(*result.gap, 0.05);
  // The figures are those of the built program.
  int64_t cycles = 0;
  for (const auto& part : result.build->compiled) cycles += part.cycles;
  EXPECT_EQ(cycles, chosen.cycles);
  EXPECT_EQ(result.build->accuracy->decibels, chosen.decibels);
}

/// A user might try 16x8 for one type of operator: in at most as many cycles, the search must reach at least
/// as many decibels.
void expectNotWorseThanByHand(const pipeline::Options& options, std::string_view type) {
  SCOPED_TRACE(fmt::format("{} {}", options.model.string(), type));
  const test::TempDir folder;
  pipeline::Options ruled = options;
  ruled.quantizeConfig = folder / "rules.json";
  std::ofstream(ruled.quantizeConfig)
      << fmt::format(R"({{"rules": [{{"op": "{}", "precision": "int16x8"}}]}})", type);
  Goal any;
  any.minSqnr = -1000;
  const Row byHand = chosenRow(found(ruled, any));
  Goal goal;
  goal.maxCycles = byHand.cycles;
  const AutoPrecision result = found(options, goal);
  ASSERT_TRUE(result.build);
  const Row& chosen = chosenRow(result);
  EXPECT_LE(chosen.cycles, byHand.cycles);
  EXPECT_GE(chosen.decibels, byHand.decibels);
}

TEST(AutoPrecision, IsNeverWorseThanARuleByOperatorType) {
  for (const char* type : {"linear", "add", "conv2d"}) expectNotWorseThanByHand(optionsFor("residual"), type);
  for (const char* type : {"linear", "adaptive_avg_pool2d"})
    expectNotWorseThanByHand(optionsFor("mobile"), type);
}

/// The effects of raising layers are not additive here: according to the model alone, the search finds int8.
TEST(AutoPrecision, IsNeverWorseThanARuleIfEffectsAreNotAdditive) {
  CARINA_NEED_FIXTURES(fixtures);
  pipeline::Options options = optionsFor("residual");
  options.model = fixtures / "fixtures" / "models" / "mini_detect.pt2";
  options.calibration = fixtures / "fixtures" / "models" / "mini_detect.npz";
  expectNotWorseThanByHand(options, "sigmoid");
}

/// As measured by verify with the resulting rules, not as simulated.
TEST(AutoPrecision, ProgramMeetsTheGoal) {
  for (const char* network : {"residual", "digits8", "mobile"}) {
    Goal goal;
    goal.minSqnr = 20;
    const AutoPrecision easy = found(optionsFor(network), goal);
    ASSERT_TRUE(chosenRow(easy).program) << network;
    // Slightly above the int8 program: according to the simulation alone, int8 might suffice.
    goal.minSqnr = *chosenRow(easy).program + 0.01;
    const AutoPrecision result = found(optionsFor(network), goal);
    ASSERT_TRUE(result.build) << network;
    const Row& chosen = chosenRow(result);
    ASSERT_TRUE(chosen.program) << network;
    EXPECT_GE(*chosen.program, *goal.minSqnr) << network;
    EXPECT_NE(chosen.name, "int8") << network;
    const test::TempDir folder;
    const std::filesystem::path file = folder / "rules.json";
    std::ofstream(file) << quantize::rulesText(result.rules, "");
    pipeline::Options options = optionsFor(network);
    options.quantizeConfig = file;
    const auto build = require(pipeline::build(options));
    const auto arrays = require(readNpz(options.calibration));
    auto samples = require(pipeline::verificationSamples(build, arrays));
    samples.resize(std::min<size_t>(samples.size(), 8));  // as carina verify does
    const auto verified = require(pipeline::verify(build, samples));
    EXPECT_GE(*verified.worstDecibels(), *chosen.program - 1e-3) << network;
  }
}

TEST(AutoPrecision, RulesFileReproducesTheProgram) {
  Goal goal;
  goal.minSqnr = 20;
  const AutoPrecision ends = found(optionsFor("residual"), goal);
  goal.minSqnr = (rowNamed(ends, "int8").decibels + rowNamed(ends, "16x8").decibels) / 2;
  const AutoPrecision result = found(optionsFor("residual"), goal);
  ASSERT_TRUE(result.build);
  const test::TempDir folder;
  const std::filesystem::path file = folder / "rules.json";
  std::ofstream(file) << quantize::rulesText(result.rules, "two\nlines");
  pipeline::Options options = optionsFor("residual");
  options.quantizeConfig = file;
  options.estimateAccuracy = true;
  const auto again = require(pipeline::build(options));
  const auto one = require(pte::writeProgram(result.build->program)),
             other = require(pte::writeProgram(again.program));
  EXPECT_TRUE(one == other);
  EXPECT_GE(again.accuracy->decibels, *goal.minSqnr) << "the estimate of compile meets the goal as well";
}

TEST(AutoPrecision, ChoosesTheMostAccurateWithinTheCycles) {
  Goal goal;
  goal.minSqnr = 20;
  const AutoPrecision ends = found(optionsFor("residual"), goal);
  const Row low = rowNamed(ends, "int8"), high = rowNamed(ends, "16x8");
  Goal cheap;
  cheap.maxCycles = (low.cycles + high.cycles) / 2;
  const AutoPrecision result = found(optionsFor("residual"), cheap);
  ASSERT_TRUE(result.build);
  const Row& chosen = chosenRow(result);
  EXPECT_LE(chosen.cycles, *cheap.maxCycles);
  EXPECT_GT(chosen.decibels, low.decibels);
  for (const Row& row : result.rows) {
    if (row.cycles <= *cheap.maxCycles) {
      EXPECT_LE(row.decibels, chosen.decibels) << row.name;
    }
  }
}

TEST(AutoPrecision, OutOfReach) {
  Goal goal;
  goal.minSqnr = 140;
  const AutoPrecision result = found(optionsFor("residual"), goal);
  EXPECT_FALSE(result.build);
  const Row& nearest = chosenRow(result);
  for (const Row& row : result.rows) EXPECT_LE(row.decibels, nearest.decibels);
  Goal cycles;
  cycles.maxCycles = 10;
  EXPECT_FALSE(found(optionsFor("residual"), cycles).build);
}

TEST(AutoPrecision, KeepsThePrecisionsOfUserRules) {
  const test::TempDir folder;
  const std::filesystem::path file = folder / "rules.json";
  std::ofstream(file) << R"({"rules": [{"op": "conv2d", "precision": "int8"}]})";
  pipeline::Options options = optionsFor("residual");
  options.quantizeConfig = file;
  Goal goal;
  goal.minSqnr = 140;
  const AutoPrecision result = found(options, goal);
  EXPECT_FALSE(result.build);
  for (const LayerChoice& layer : result.layers) {
    for (const std::string& node : layer.nodes)
      EXPECT_THAT(node, testing::Not(testing::StartsWith("conv2d")));
  }
  ASSERT_FALSE(result.rules.rules.empty());
  EXPECT_EQ(result.rules.rules[0].pattern, "conv2d");
}

TEST(AutoPrecision, Top1OfLabelledSamples) {
  Goal goal;
  goal.minTop1 = 50;
  goal.data = modelFile("digits8_eval.npz");
  const AutoPrecision result = found(optionsFor("digits8"), goal);
  ASSERT_TRUE(result.build);
  EXPECT_GT(result.labelled, 0u);
  EXPECT_GE(*chosenRow(result).top1, 50);
  goal.data = modelFile("digits8.npz");  // without labels
  const auto refused = autoPrecision(optionsFor("digits8"), goal);
  ASSERT_FALSE(refused.ok());
}

TEST(AutoPrecision, PrequantizedNetworksAreRefused) {
  pipeline::Options options;
  options.target = "ethos-u55-128";
  Goal goal;
  goal.minSqnr = 20;
  for (const char* file : {"qdq/add.pt2", "tosa/abs_4x2x5x4x3_i32.tosa"}) {
    options.model = test::dataDir() / file;
    const auto refused = autoPrecision(options, goal);
    ASSERT_FALSE(refused.ok()) << file;
    EXPECT_EQ(refused.error().code(), Code::OptionDoesNotApply) << refused.error().str();
  }
}

}  // namespace
}  // namespace carina::precision
