// SPDX-License-Identifier: Apache-2.0
#include "precision/model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace carina::precision {
namespace {

constexpr Effort kEffort{600, 0};
constexpr size_t kMaxCentered = 24;  // each simulates every site

/// The choice with one site changed, for every site.
std::vector<Rounded> neighboursOf(const Rounded& rounded) {
  std::vector<Rounded> neighbours(rounded.size(), rounded);
  for (size_t s = 0; s < rounded.size(); ++s) neighbours[s][s] = !rounded[s];
  return neighbours;
}

}  // namespace

Result<Model> Model::create(Simulator simulator, const Candidate& narrow, const Candidate& wide) {
  Model model(std::move(simulator));
  model.floor_ = wide.noise;
  model.factor_.assign(model.floor_.size(), 1);
  model.narrowDecibels_ = narrow.decibels;
  model.wideDecibels_ = wide.decibels;
  model.setCosts(narrow, wide);
  CARINA_RETURN_IF_ERROR(model.measure());
  return model;
}

void Model::setCosts(const Candidate& narrow, const Candidate& wide) {
  narrowCycles_ = static_cast<double>(narrow.cycles());
  const std::map<std::string, double> low = cyclesByNode(*narrow.build), high = cyclesByNode(*wide.build);
  const auto cyclesIn = [](const std::map<std::string, double>& cycles, const std::string& node) {
    const auto found = cycles.find(node);
    return found == cycles.end() ? 0 : found->second;
  };
  for (const quantize::PrecisionUnit& unit : network().units) {
    double cost = 0;
    for (const auto* names : {&unit.nodes, &unit.followers}) {
      for (const std::string& name : *names) cost += cyclesIn(high, name) - cyclesIn(low, name);
    }
    costs_.push_back(cost);
  }
}

Status Model::measure() {
  const size_t units = network().units.size();
  const Rounded nothing(units + network().edges.size(), false);
  CARINA_TRY(const std::vector<Noise> alone, simulator_.noises(neighboursOf(nothing)));
  const Raised none(units, false);
  const Rounded narrow = roundedBy(network(), none);
  CARINA_RETURN_IF_ERROR(simulator_.moveTo(narrow));
  CARINA_TRY(const Noise all, simulator_.noiseOf(none));
  std::vector<Rounded> without;
  for (size_t u = 0; u < units; ++u) {
    Raised one = none;
    one[u] = true;
    without.push_back(roundedBy(network(), one));
  }
  CARINA_TRY(const std::vector<Noise> left, simulator_.noises(without));
  const auto worst = [](const Noise& noise) {
    return noise.empty() ? 0 : *std::max_element(noise.begin(), noise.end());
  };
  for (size_t u = 0; u < units; ++u) {
    sensitivities_.push_back(
        {decibelsOf(alone[u]), worst(all) > 0 ? (worst(all) - worst(left[u])) / worst(all) : 0, costs_[u]});
  }
  alone_ = effects_ = alone;
  offset_.assign(simulator_.compared().size(), 0);
  return {};
}

Status Model::center(const Raised& raised) {
  const Rounded rounded = roundedBy(network(), raised);
  CARINA_RETURN_IF_ERROR(simulator_.moveTo(rounded));
  CARINA_TRY(const Noise here, simulator_.noiseOf(raised));
  CARINA_TRY(const std::vector<Noise> beside, simulator_.noises(neighboursOf(rounded)));
  offset_ = here;
  for (size_t s = 0; s < rounded.size(); ++s) {
    for (size_t k = 0; k < here.size(); ++k) {
      // Errors that cancel each other are coincidental: no site removes noise by rounding.
      effects_[s][k] = std::max(0.0, rounded[s] ? here[k] - beside[s][k] : beside[s][k] - here[k]);
      if (rounded[s]) offset_[k] -= effects_[s][k];
    }
  }
  ++centered_;
  return {};
}

Noise Model::expected(const Raised& raised) const {
  const Rounded rounded = roundedBy(network(), raised);
  Noise noise = offset_;
  for (size_t s = 0; s < rounded.size(); ++s) {
    for (size_t k = 0; k < noise.size(); ++k) noise[k] += rounded[s] ? effects_[s][k] : 0;
  }
  return noise;
}

double Model::noiseLeft(double decibels, size_t k) const {
  return (noiseAt(decibels) - floor_[k]) / factor_[k];
}

Problem Model::problemFor(double decibels, double share) const {
  Problem problem;
  for (size_t u = 0; u < costs_.size(); ++u) problem.layers.push_back({costs_[u], effects_[u]});
  for (const quantize::PrecisionEdge& edge : network().edges) {
    const double price = conversion_ * static_cast<double>(edge.elements);
    problem.edges.push_back(
        {edge.from, edge.to, price, price, effects_[costs_.size() + problem.edges.size()]});
  }
  for (size_t k = 0; k < floor_.size(); ++k)
    problem.limits.push_back(share * noiseLeft(decibels, k) - offset_[k]);
  return problem;
}

double Model::convertedBy(const Raised& raised) const {
  double elements = 0;
  for (const quantize::PrecisionEdge& edge : network().edges) {
    if (raised[edge.from] != raised[edge.to]) elements += static_cast<double>(edge.elements);
  }
  return elements;
}

double Model::cyclesOf(const Raised& raised) const {
  double cycles = narrowCycles_ + conversion_ * convertedBy(raised);
  for (size_t u = 0; u < raised.size(); ++u) cycles += raised[u] ? costs_[u] : 0;
  return cycles;
}

Result<std::optional<Proposal>> Model::cheapest(double decibels) {
  // Centered effects are those around one choice: every goal begins with those of single sites.
  const auto forget = [&] {
    effects_ = alone_;
    offset_.assign(offset_.size(), 0);
  };
  forget();
  std::optional<Proposal> best;
  double share = 1;
  bool mayCenter = true;
  for (int round = 0; round < 10; ++round) {
    const Problem problem = problemFor(decibels, share);
    if (std::any_of(problem.limits.begin(), problem.limits.end(), [](double limit) { return limit < 0; })) {
      if (!std::exchange(mayCenter, false)) break;
      forget();
      continue;
    }
    const Solution solution = solve(problem, kEffort);
    CARINA_TRY(Noise noise, simulator_.noiseOf(solution.raised));
    const Noise sum = expected(solution.raised);
    double used = 0, missed = 0;  // of the noise that the goal leaves
    for (size_t k = 0; k < noise.size(); ++k) {
      const double left = noiseLeft(decibels, k);
      used = std::max(used, noise[k] / left);
      missed = std::max(missed, std::fabs(noise[k] - sum[k]) / left);
      noise[k] = factor_[k] * noise[k] + floor_[k];
    }
    const double cycles = cyclesOf(solution.raised);
    if (used <= 1 && (!best || cycles < best->cycles))
      best = {solution.raised, cycles, decibelsOf(noise), solution.gap(cycles)};
    if (used <= 1 && used > 0.97) break;
    if (mayCenter && used < 1.5 && missed > 0.05 && centered_ < kMaxCentered) {
      CARINA_RETURN_IF_ERROR(center(solution.raised));
      share = 1;
    } else {
      share *= used > 1 ? std::max(0.98 / used, 0.3) : std::min(1.3, 0.99 / std::max(used, 0.1));
    }
  }
  return best;
}

Result<std::optional<Proposal>> Model::best(double cycles) {
  effects_ = alone_;
  offset_.assign(offset_.size(), 0);
  double low = narrowDecibels_, high = wideDecibels_;
  for (int step = 0; step < 12 && high - low > 0.05; ++step) {
    const double middle = (low + high) / 2;
    const Problem problem = problemFor(middle, 1);
    const bool possible =
        std::none_of(problem.limits.begin(), problem.limits.end(), [](double limit) { return limit < 0; });
    const bool fits = possible && cyclesOf(solve(problem, {100, 0}).raised) <= cycles;
    (fits ? low : high) = middle;
  }
  for (int step = 0; step < 4; ++step, low -= 0.5) {
    CARINA_TRY(auto proposal, cheapest(low));
    if (proposal && proposal->cycles <= cycles) return proposal;
  }
  return std::optional<Proposal>();
}

Status Model::learn(const Proposal& proposal, const Candidate& found) {
  CARINA_TRY(const Noise simulated, simulator_.noiseOf(proposal.raised));
  for (size_t k = 0; k < floor_.size(); ++k) {
    if (simulated[k] > 0) factor_[k] = std::clamp((found.noise[k] - floor_[k]) / simulated[k], 0.25, 4.0);
  }
  const double elements = convertedBy(proposal.raised);
  double rest = static_cast<double>(found.cycles()) - narrowCycles_;
  for (size_t u = 0; u < costs_.size(); ++u) rest -= proposal.raised[u] ? costs_[u] : 0;
  seenSquares_ += elements * elements;
  seenProducts_ += elements * rest;
  if (seenSquares_ > 0) conversion_ = std::max(0.0, seenProducts_ / seenSquares_);
  return {};
}

}  // namespace carina::precision
