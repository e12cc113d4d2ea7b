// SPDX-License-Identifier: Apache-2.0
// The search compared with exhaustive enumeration, on small problems of every kind.
#include "precision/search.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "precision/min_cut.hpp"

namespace carina::precision {
namespace {

constexpr double kNothing = std::numeric_limits<double>::infinity();

double cheapestOfAll(const Problem& problem) {
  double best = kNothing;
  std::vector<bool> raised(problem.layers.size());
  for (size_t bits = 0; bits < size_t{1} << raised.size(); ++bits) {
    for (size_t u = 0; u < raised.size(); ++u) raised[u] = (bits >> u & 1) != 0;
    if (problem.keepsLimits(raised)) best = std::min(best, problem.costOf(raised));
  }
  return best;
}

/// Few distinct values, so that there are ties; costs may be negative.
Problem randomProblem(size_t noises) {
  const auto number = [](int low, int high) { return static_cast<double>(*rc::gen::inRange(low, high)); };
  Problem problem;
  const auto layers = *rc::gen::inRange<size_t>(1, 10);
  for (size_t u = 0; u < layers; ++u) {
    Problem::Layer layer{number(-3, 20), {}};
    for (size_t k = 0; k < noises; ++k) layer.noise.push_back(number(0, 12));
    problem.layers.push_back(std::move(layer));
  }
  const auto edges = *rc::gen::inRange<size_t>(0, 12);
  for (size_t e = 0; e < edges && layers > 1; ++e) {
    const auto from = *rc::gen::inRange<size_t>(0, layers - 1);
    const auto to = *rc::gen::inRange<size_t>(from + 1, layers);
    problem.edges.push_back({from, to, number(0, 8), number(0, 8), {}});
    for (size_t k = 0; k < noises && e % 2 == 0; ++k) problem.edges.back().noise.push_back(number(0, 12));
  }
  for (size_t k = 0; k < noises; ++k) problem.limits.push_back(number(0, 40));
  return problem;
}

RC_GTEST_PROP(Search, FindsTheCheapestChoiceAndProvesIt, ()) {
  const Problem problem = randomProblem(*rc::gen::inRange<size_t>(1, 4));
  const Solution found = solve(problem, {100'000, 0});
  const double best = cheapestOfAll(problem);
  RC_ASSERT(problem.keepsLimits(found.raised));
  RC_ASSERT(std::fabs(problem.costOf(found.raised) - found.cost) < 1e-6);
  RC_ASSERT(std::fabs(found.cost - best) < 1e-6);
  RC_ASSERT(std::fabs(found.bound - best) < 1e-6);
}

RC_GTEST_PROP(Search, BoundHoldsHoweverShortTheSearch, ()) {
  const Problem problem = randomProblem(*rc::gen::inRange<size_t>(1, 3));
  const Solution found = solve(problem, {*rc::gen::inRange<size_t>(1, 30), 0});
  const double best = cheapestOfAll(problem);
  RC_ASSERT(problem.keepsLimits(found.raised));
  RC_ASSERT(found.bound <= best + 1e-6);
  RC_ASSERT(found.cost >= best - 1e-6);
}

RC_GTEST_PROP(Search, RespectsTheTolerance, ()) {
  const Problem problem = randomProblem(1);
  const double tolerance = *rc::gen::inRange(0, 6);
  const Solution found = solve(problem, {100'000, tolerance});
  RC_ASSERT(found.cost <= cheapestOfAll(problem) + tolerance + 1e-6);
  RC_ASSERT(found.cost - found.bound <= tolerance + 1e-6);
}

RC_GTEST_PROP(MinCut, FindsTheCheapestCut, ()) {
  Problem problem = randomProblem(1);
  problem.limits[0] = 1e9;  // no limit, but a price for noise
  for (Problem::Edge& edge : problem.edges) edge.noise.clear();
  const double price = *rc::gen::inRange(0, 5);
  MinCut cut(problem.layers.size());
  for (size_t u = 0; u < problem.layers.size(); ++u)
    cut.addPrice(u, price * problem.layers[u].noise[0], problem.layers[u].cost);
  for (const Problem::Edge& edge : problem.edges) {
    cut.addDifference(edge.from, edge.to, edge.whenToRaised);
    cut.addDifference(edge.to, edge.from, edge.whenFromRaised);
  }
  const auto value = [&](const std::vector<bool>& raised) {
    double sum = problem.costOf(raised);
    for (size_t u = 0; u < raised.size(); ++u) sum += raised[u] ? 0 : price * problem.layers[u].noise[0];
    return sum;
  };
  const double found = value(cut.solve());
  std::vector<bool> raised(problem.layers.size());
  for (size_t bits = 0; bits < size_t{1} << raised.size(); ++bits) {
    for (size_t u = 0; u < raised.size(); ++u) raised[u] = (bits >> u & 1) != 0;
    RC_ASSERT(found <= value(raised) + 1e-6);
  }
}

TEST(Search, NeighboursAreRaisedTogetherIfConversionsCostMore) {
  // The middle layer adds almost no noise, but is between two layers that must be raised.
  Problem problem;
  problem.layers = {{10, {100}}, {3, {1}}, {10, {100}}};
  problem.edges = {{0, 1, 4, 4, {}}, {1, 2, 4, 4, {}}};
  problem.limits = {5};
  const Solution found = solve(problem);
  EXPECT_EQ(found.raised, std::vector<bool>({true, true, true}));
  EXPECT_DOUBLE_EQ(found.cost, 23);
  problem.layers[1].cost = 9;
  EXPECT_EQ(solve(problem).raised, std::vector<bool>({true, false, true}));
}

TEST(Search, ReadersAreRaisedWithTheirInputs) {
  // Raising only the first layer does not remove its noise, because the second rounds its input.
  Problem problem;
  problem.layers = {{10, {100}}, {6, {0}}, {50, {0}}};
  problem.edges = {{0, 1, 0, 0, {90}}, {0, 2, 0, 0, {10}}};
  problem.limits = {20};
  const Solution found = solve(problem);
  EXPECT_EQ(found.raised, std::vector<bool>({true, true, false}));
  EXPECT_DOUBLE_EQ(found.bound, 16);
}

TEST(Search, NothingIsRaisedWithinTheLimits) {
  Problem problem;
  problem.layers = {{10, {1}}, {3, {1}}};
  problem.limits = {2};
  const Solution found = solve(problem);
  EXPECT_EQ(found.raised, std::vector<bool>({false, false}));
  EXPECT_DOUBLE_EQ(found.gap(13), 0);
}

/// A chain of 150 layers, as in large networks.
TEST(Search, LargeProblemsEndWithASmallGap) {
  Problem problem;
  uint32_t state = 1;
  const auto random = [&] {
    return static_cast<double>((state = state * 1664525 + 1013904223) >> 8 & 0xffff);
  };
  double noise = 0, cost = 0;
  for (size_t u = 0; u < 150; ++u) {
    problem.layers.push_back({1000 + random(), {std::exp2(random() / 4096)}});
    noise += problem.layers.back().noise[0];
    cost += problem.layers.back().cost;
    if (u > 0) problem.edges.push_back({u - 1, u, 200, 300, {}});
  }
  problem.limits = {noise / 50};
  const Solution found = solve(problem, {2000, 0});
  EXPECT_TRUE(problem.keepsLimits(found.raised));
  EXPECT_LT(found.cost, cost / 2);
  EXPECT_LT(found.gap(found.cost), 0.01);
}

TEST(Search, NoLayers) {
  Problem problem;
  problem.limits = {0};
  EXPECT_TRUE(solve(problem).raised.empty());
}

}  // namespace
}  // namespace carina::precision
