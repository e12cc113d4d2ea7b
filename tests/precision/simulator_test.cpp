// SPDX-License-Identifier: Apache-2.0
// Precision units of a network and their noise, whose incremental computation equals that of whole runs.
#include "precision/simulator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "quantize/small_network.hpp"
#include "support/require.hpp"

namespace carina::precision {
namespace {

using quantize::SwitchedNetwork;
using testing::ElementsAre;

/// Two convolutions whose sum is concatenated with a constant, a function of a function, a convolution at the
/// end.
struct Branches : quantize::Network {
  Branches() {
    in("conv2d", "body");
    quantize::Value* first = conv(input({1, 2, 6, 6}), 4);
    in("relu", "body");
    first = relu(first);
    in("conv2d_1", "body");
    quantize::Value* second = conv(first, 4);
    in("add", "head");
    quantize::Value* sum = make<aten::AddTensor>(first, second, int64_t{1});
    in("cat", "head");
    quantize::Value* joined =
        make<aten::Cat>(std::vector<quantize::Value*>{sum, constant({1, 2, 6, 6}, -0.01f, 0.01f)}, 1);
    in("mul", "head");
    quantize::Value* scaled = make<aten::MulScalar>(joined, 0.5);
    in("sigmoid", "head");
    quantize::Value* bent = make<aten::Sigmoid>(scaled);
    in("conv2d_2", "head");
    done(conv(bent, 3));
  }
};

std::vector<quantize::Sample> samplesOf(const ir::Graph& graph, size_t count) {
  std::vector<quantize::Sample> samples(count);
  for (size_t i = 0; i < count; ++i) {
    for (const ir::Value* input : graph.inputs())
      samples[i].push_back(quantize::ramp(input->shape(), -1 - static_cast<float>(i), 2));
  }
  return samples;
}

SwitchedNetwork switchedBranches(const quantize::Options& options = {}, size_t mostUnits = 100) {
  Branches network;
  const std::vector<quantize::Sample> samples = samplesOf(network.graph, 2);
  return require(quantize::switchedNetwork(std::move(network.graph), options, samples, mostUnits));
}

Simulator simulatorOf(SwitchedNetwork network) {
  std::vector<quantize::Sample> samples = samplesOf(network.graph, 2);
  return require(Simulator::create(std::move(network), std::move(samples)));
}

TEST(PrecisionUnits, ContainAnOperatorAndItsFollowers) {
  const SwitchedNetwork network = switchedBranches();
  std::vector<std::vector<std::string>> nodes, followers;
  for (const quantize::PrecisionUnit& unit : network.units) {
    nodes.push_back(unit.nodes);
    followers.push_back(unit.followers);
  }
  using Names = std::vector<std::string>;
  EXPECT_THAT(nodes, ElementsAre(Names{"conv2d"}, Names{"conv2d_1"}, Names{"add"}, Names{"cat"},
                                 Names{"mul", "sigmoid"}, Names{"conv2d_2"}));
  EXPECT_EQ(followers[0], Names{"relu"});
  EXPECT_TRUE(network.units[3].joins);
  EXPECT_FALSE(network.units[2].joins);
  EXPECT_EQ(network.units[5].modulePath, "head");
  std::vector<std::pair<size_t, size_t>> edges;
  for (const quantize::PrecisionEdge& edge : network.edges) edges.emplace_back(edge.from, edge.to);
  EXPECT_THAT(edges, ElementsAre(std::pair(0, 1), std::pair(0, 2), std::pair(1, 2), std::pair(2, 3),
                                 std::pair(3, 4), std::pair(4, 5)));
}

/// The average of an int8 feature map needs more codes than the feature map has, and costs little.
TEST(PrecisionUnits, AveragePoolsAreUnitsAndMaxPoolsAreNot) {
  quantize::Network network;
  network.in("conv2d", "body");
  quantize::Value* map = network.conv(network.input({1, 2, 6, 6}), 4);
  network.in("max_pool2d", "body");
  const ir::Ints two{2, 2}, none{0, 0};
  map = network.make<aten::MaxPool2d>(map, two, two, none, ir::Ints{1, 1}, false);
  network.in("avg_pool2d", "head");
  map = network.make<aten::AvgPool2d>(map, two, two, none, false, true, std::nullopt);
  network.in("conv2d_1", "head");
  network.done(network.conv(map, 3));
  const std::vector<quantize::Sample> samples = samplesOf(network.graph, 2);
  const auto switched = require(quantize::switchedNetwork(std::move(network.graph), {}, samples, 100));
  ASSERT_EQ(switched.units.size(), 3u);
  EXPECT_THAT(switched.units[0].followers, ElementsAre("max_pool2d"));
  EXPECT_THAT(switched.units[1].nodes, ElementsAre("avg_pool2d"));
}

TEST(PrecisionUnits, ExcludeOperatorsWithRules) {
  quantize::Options options;
  quantize::Rule rule;
  rule.by = quantize::Rule::By::Module;
  rule.pattern = "head";
  rule.overrides.precision = quantize::Precision::Int16x8;
  options.rules = {rule};
  const SwitchedNetwork network = switchedBranches(options);
  ASSERT_EQ(network.units.size(), 2u);
  EXPECT_THAT(network.units[0].nodes, ElementsAre("conv2d"));
  EXPECT_THAT(network.units[1].nodes, ElementsAre("conv2d_1"));
}

TEST(PrecisionUnits, MergeNeighboursInLargeNetworks) {
  const SwitchedNetwork network = switchedBranches({}, 3);
  ASSERT_EQ(network.units.size(), 3u);
  EXPECT_THAT(network.units[0].nodes, ElementsAre("conv2d", "conv2d_1"));
  for (const quantize::RoundingSwitch& each : network.switches)
    EXPECT_LT(each.site, 3u + network.edges.size());
}

TEST(Simulator, RaisedUnitsAddNoNoise) {
  const Simulator simulator = simulatorOf(switchedBranches());
  const size_t units = simulator.network().units.size();
  const auto noise = [&](const Raised& raised) {
    const auto found = require(simulator.noiseOf(raised));
    return found[0];
  };
  EXPECT_EQ(noise(Raised(units, true)), 0);
  const double everything = noise(Raised(units, false));
  EXPECT_GT(everything, 0);
  for (size_t u = 0; u < units; ++u) {
    Raised raised(units, true);
    raised[u] = false;
    EXPECT_GT(noise(raised), 0) << u;
    EXPECT_LT(noise(raised), 2 * everything) << u;
  }
}

TEST(Simulator, Int8ReadersRound16BitValues) {
  const SwitchedNetwork network = switchedBranches();
  Raised raised(network.units.size(), false);
  raised[0] = true;  // read by units 1 and 2
  const Rounded rounded = roundedBy(network, raised);
  ASSERT_EQ(rounded.size(), network.units.size() + network.edges.size());
  EXPECT_FALSE(rounded[0]);
  EXPECT_TRUE(rounded[network.units.size()]) << "the edge from 0 to 1";
  EXPECT_TRUE(rounded[network.units.size() + 1]) << "the edge from 0 to 2";
  EXPECT_FALSE(rounded[network.units.size() + 2]) << "1 rounds its output";
}

TEST(Simulator, WithoutRaisedUnitsEqualsThePlainRun) {
  SwitchedNetwork network = switchedBranches();
  const ir::Graph plain = network.graph.clone();
  const std::vector<quantize::Sample> samples = samplesOf(plain, 2);
  Simulator simulator = simulatorOf(std::move(network));
  const Raised none(simulator.network().units.size(), false);
  double noise = 0, signal = 0;
  Branches real;
  for (const quantize::Sample& sample : samples) {
    const auto rounded = require(aten::execute(plain, sample)),
               expected = require(aten::execute(real.graph, sample));
    quantize::Sqnr sqnr;
    sqnr.add(expected.front(), rounded.front());
    noise += sqnr.noise;
    signal += sqnr.signal;
  }
  const auto found = require(simulator.noiseOf(none));
  EXPECT_NEAR(found[0], noise / signal, 1e-9 * noise / signal);
}

RC_GTEST_PROP(Simulator, NoiseDoesNotDependOnTheStartingPoint, ()) {
  static Simulator simulator = simulatorOf(switchedBranches());
  const size_t sites = simulator.network().units.size() + simulator.network().edges.size();
  const auto any = [&] { return *rc::gen::container<std::vector<bool>>(sites, rc::gen::arbitrary<bool>()); };
  const Rounded choice = any();
  RC_ASSERT(simulator.moveTo(any()).ok());
  const auto here = require(simulator.noises({&choice, 1}));
  RC_ASSERT(simulator.moveTo(choice).ok());
  RC_ASSERT(here == require(simulator.noises({&choice, 1})));
}

TEST(Decibels, OfTheWorstOutput) {
  EXPECT_DOUBLE_EQ(decibelsOf({1e-4, 1e-3}), 30);
  EXPECT_DOUBLE_EQ(noiseAt(30), 1e-3);
}

}  // namespace
}  // namespace carina::precision
