// SPDX-License-Identifier: Apache-2.0
#include "precision/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <queue>

#include "base/check.hpp"
#include "precision/min_cut.hpp"

namespace carina::precision {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

enum class Fixed : uint8_t { Free, Low, Raised };

/// A subset of the choices: some layers are fixed.
struct Branch {
  std::vector<Fixed> fixed;
  std::vector<double> prices;  // of the noises, at which its bound was found
  double bound = -kInfinite;
  size_t number = 0;  // of equal bounds, the older branch comes first
};
struct ByBound {
  bool operator()(const Branch& a, const Branch& b) const {
    return a.bound != b.bound ? a.bound > b.bound : a.number > b.number;
  }
};

class Search {
 public:
  Search(const Problem& problem, const Effort& effort) : problem_(problem), effort_(effort) {
    edgesOf_.resize(problem.layers.size());
    for (size_t e = 0; e < problem.edges.size(); ++e) {
      edgesOf_[problem.edges[e].from].push_back(e);
      edgesOf_[problem.edges[e].to].push_back(e);
    }
    best_.raised.assign(problem.layers.size(), true);
    best_.cost = problem.costOf(best_.raised);
  }

  Solution run() {
    Branch root{std::vector<Fixed>(problem_.layers.size(), Fixed::Free),
                std::vector<double>(problem_.limits.size(), 0), -kInfinite, 0};
    raiseBound(root, kRootSteps);
    std::priority_queue<Branch, std::vector<Branch>, ByBound> open;
    open.push(std::move(root));
    size_t numbers = 1;
    best_.bound = -kInfinite;
    while (!open.empty()) {
      best_.bound = std::min(open.top().bound, best_.cost);
      if (best_.cost - best_.bound <= effort_.tolerance + rounding() || cuts_ >= effort_.cuts) return best_;
      const Branch branch = open.top();
      open.pop();
      const std::optional<size_t> layer = branchingLayer(branch);
      if (!layer) continue;  // everything is fixed, and its bound is its cost
      for (const Fixed fixed : {Fixed::Low, Fixed::Raised}) {
        Branch child = branch;
        child.fixed[*layer] = fixed;
        child.number = numbers++;
        if (!canKeepLimits(child)) continue;
        raiseBound(child, kSteps);
        if (child.bound < best_.cost - effort_.tolerance - rounding()) open.push(std::move(child));
      }
    }
    best_.bound = best_.cost - effort_.tolerance;
    return best_;
  }

 private:
  static constexpr int kRootSteps = 24, kSteps = 6, kRounds = 3;

  double rounding() const { return 1e-9 * std::max(1.0, std::fabs(best_.cost)); }

  /// False if the layers fixed as not raised exceed a limit by themselves.
  bool canKeepLimits(const Branch& branch) const {
    for (size_t k = 0; k < problem_.limits.size(); ++k) {
      double noise = 0;
      for (size_t u = 0; u < branch.fixed.size(); ++u) {
        if (branch.fixed[u] == Fixed::Low) noise += problem_.layers[u].noise[k];
      }
      if (noise > problem_.limits[k]) return false;
    }
    return true;
  }

  /// The best choice of a branch at given prices of noise, and the resulting bound.
  std::pair<std::vector<bool>, double> relaxed(const Branch& branch, const std::vector<double>& prices) {
    ++cuts_;
    MinCut cut(problem_.layers.size());
    double most = 1;
    for (const Problem::Layer& layer : problem_.layers) most += std::fabs(layer.cost);
    const auto priced = [&](const Problem::Edge& edge) {
      double noise = 0;
      for (size_t k = 0; k < edge.noise.size(); ++k) noise += prices[k] * edge.noise[k];
      return edge.whenFromRaised + noise;
    };
    for (const Problem::Edge& edge : problem_.edges) most += priced(edge) + edge.whenToRaised;
    for (size_t u = 0; u < problem_.layers.size(); ++u) {
      double noise = 0;
      for (size_t k = 0; k < prices.size(); ++k) noise += prices[k] * problem_.layers[u].noise[k];
      const double forced = 2 * most + 2 * noise;
      cut.addPrice(u, noise + (branch.fixed[u] == Fixed::Raised ? forced : 0),
                   problem_.layers[u].cost + (branch.fixed[u] == Fixed::Low ? forced : 0));
    }
    for (const Problem::Edge& edge : problem_.edges) {
      cut.addDifference(edge.from, edge.to, edge.whenToRaised);
      cut.addDifference(edge.to, edge.from, priced(edge));
    }
    std::vector<bool> raised = cut.solve();
    for (size_t u = 0; u < raised.size(); ++u) {
      if (branch.fixed[u] != Fixed::Free) raised[u] = branch.fixed[u] == Fixed::Raised;
    }
    double value = problem_.costOf(raised);
    for (size_t k = 0; k < prices.size(); ++k)
      value += prices[k] * (problem_.noiseOf(k, raised) - problem_.limits[k]);
    consider(raised, branch);
    return {std::move(raised), value};
  }

  /// Searches for the prices with the highest bound, one noise after the other: the bound is concave, and the
  /// noise in excess of its limit indicates on which side the maximum is.
  void raiseBound(Branch& branch, int steps) {
    double best = relaxed(branch, branch.prices).second;
    const int rounds = problem_.limits.size() > 1 ? kRounds : 1;
    for (int round = 0; round < rounds; ++round) {
      for (size_t k = 0; k < problem_.limits.size(); ++k) {
        if (cuts_ >= effort_.cuts && branch.number > 0) break;
        best = std::max(best, raiseOne(branch, k, steps));
      }
    }
    branch.bound = std::max(branch.bound, best);
  }

  /// Brackets the maximum between a price that leaves too much noise and one that does not, then moves to the
  /// intersection of the lines at both ends.
  double raiseOne(Branch& branch, size_t k, int steps) {
    struct End {
      double price = 0, value = 0, slope = 0;
    };
    std::vector<double> prices = branch.prices;
    double best = -kInfinite;
    const auto at = [&](double price) {
      prices[k] = price;
      const auto [raised, value] = relaxed(branch, prices);
      if (value > best) {
        best = value;
        branch.prices[k] = price;
      }
      return End{price, value, problem_.noiseOf(k, raised) - problem_.limits[k]};
    };
    End low = at(branch.prices[k]);
    if (low.slope <= 0 && low.price > 0) low = at(0);
    if (low.slope <= 0) return best;
    End high = at(low.price > 0 ? 2 * low.price : startPrice(k));
    for (int i = 0; i < 64 && high.slope > 0; ++i) {
      low = high;
      high = at(8 * high.price);
    }
    if (high.slope > 0) return best;
    for (int i = 0; i < steps; ++i) {
      if (low.slope - high.slope <= 0) break;
      const double meet = (high.value - low.value + low.slope * low.price - high.slope * high.price) /
                          (low.slope - high.slope);
      if (!(meet > low.price && meet < high.price)) break;
      const double there = low.value + low.slope * (meet - low.price);
      const End middle = at(meet);
      if (there - middle.value <= rounding()) break;
      (middle.slope > 0 ? low : high) = middle;
    }
    return best;
  }

  /// The price at which raising everything costs about as much as all noise.
  double startPrice(size_t k) const {
    double cost = 0, noise = 0;
    for (const Problem::Layer& layer : problem_.layers) {
      cost += std::fabs(layer.cost);
      noise += layer.noise[k];
    }
    return noise > 0 ? std::max(cost, 1.0) / noise : 1.0;
  }

  /// Derives a choice that satisfies the limits: raises the layers that remove most noise for their cost,
  /// then lowers those that are not needed.
  void consider(std::vector<bool> raised, const Branch& branch) {
    std::vector<double> noise(problem_.limits.size());
    for (size_t k = 0; k < noise.size(); ++k) noise[k] = problem_.noiseOf(k, raised);
    const auto set = [&](size_t u, bool up) {
      for (size_t k = 0; k < noise.size(); ++k) noise[k] += noiseChange(raised, u, k);
      raised[u] = up;
    };
    while (const auto layer = worthRaising(raised, noise, branch)) set(*layer, true);
    while (const auto layer = worthLowering(raised, noise, branch)) set(*layer, false);
    const double cost = problem_.costOf(raised);
    if (cost < best_.cost && problem_.keepsLimits(raised)) {
      best_.cost = cost;
      best_.raised = std::move(raised);
    }
  }

  /// Empty if the limits are satisfied, or cannot be.
  std::optional<size_t> worthRaising(const std::vector<bool>& raised, const std::vector<double>& noise,
                                     const Branch& branch) const {
    std::optional<size_t> chosen;
    double most = 0;
    for (size_t u = 0; u < raised.size(); ++u) {
      if (raised[u] || branch.fixed[u] == Fixed::Low) continue;
      double gain = 0;
      for (size_t k = 0; k < noise.size(); ++k) {
        const double over = noise[k] - problem_.limits[k];
        if (over > 0) gain += std::min(-noiseChange(raised, u, k), over) / over;
      }
      const double share = gain / std::max(changeOf(raised, u), 1e-9);
      if (share > most) {
        most = share;
        chosen = u;
      }
    }
    return chosen;
  }

  std::optional<size_t> worthLowering(const std::vector<bool>& raised, const std::vector<double>& noise,
                                      const Branch& branch) const {
    std::optional<size_t> chosen;
    double most = 0;
    for (size_t u = 0; u < raised.size(); ++u) {
      if (!raised[u] || branch.fixed[u] == Fixed::Raised) continue;
      bool fits = true;
      for (size_t k = 0; k < noise.size(); ++k)
        fits = fits && noise[k] + noiseChange(raised, u, k) <= problem_.limits[k];
      const double saved = fits ? -changeOf(raised, u) : 0;
      if (saved <= most) continue;
      most = saved;
      chosen = u;
    }
    return chosen;
  }

  /// Change of a noise when one layer changes.
  double noiseChange(const std::vector<bool>& raised, size_t u, size_t k) const {
    double change = problem_.layers[u].noise[k];
    for (const size_t e : edgesOf_[u]) {
      const Problem::Edge& edge = problem_.edges[e];
      if (edge.noise.empty()) continue;
      if (edge.from == u && !raised[edge.to]) change -= edge.noise[k];
      if (edge.to == u && raised[edge.from]) change += edge.noise[k];
    }
    return raised[u] ? change : -change;
  }

  /// Change of the cost when one layer changes.
  double changeOf(const std::vector<bool>& raised, size_t u) const {
    double change = raised[u] ? -problem_.layers[u].cost : problem_.layers[u].cost;
    for (const size_t e : edgesOf_[u]) {
      const Problem::Edge& edge = problem_.edges[e];
      const bool isFrom = edge.from == u;
      const bool other = raised[isFrom ? edge.to : edge.from];
      const double whenUp = isFrom ? edge.whenFromRaised : edge.whenToRaised;
      const double whenOtherUp = isFrom ? edge.whenToRaised : edge.whenFromRaised;
      const double before = raised[u] == other ? 0 : raised[u] ? whenUp : whenOtherUp;
      const double after = raised[u] != other ? 0 : raised[u] ? whenOtherUp : whenUp;
      change += after - before;
    }
    return change;
  }

  /// The layer for which the prices are least decisive.
  std::optional<size_t> branchingLayer(const Branch& branch) const {
    std::optional<size_t> chosen;
    double least = kInfinite;
    for (size_t u = 0; u < branch.fixed.size(); ++u) {
      if (branch.fixed[u] != Fixed::Free) continue;
      double noise = 0;
      for (size_t k = 0; k < branch.prices.size(); ++k)
        noise += branch.prices[k] * problem_.layers[u].noise[k];
      const double doubt = std::fabs(problem_.layers[u].cost - noise) /
                           std::max({std::fabs(problem_.layers[u].cost), noise, 1e-30});
      if (doubt < least) {
        least = doubt;
        chosen = u;
      }
    }
    return chosen;
  }

  const Problem& problem_;
  Effort effort_;
  std::vector<std::vector<size_t>> edgesOf_;
  Solution best_;
  size_t cuts_ = 0;
};

}  // namespace

double Problem::costOf(const std::vector<bool>& raised) const {
  double cost = 0;
  for (size_t u = 0; u < layers.size(); ++u) {
    if (raised[u]) cost += layers[u].cost;
  }
  for (const Edge& edge : edges) {
    if (raised[edge.from] == raised[edge.to]) continue;
    cost += raised[edge.from] ? edge.whenFromRaised : edge.whenToRaised;
  }
  return cost;
}

double Problem::noiseOf(size_t k, const std::vector<bool>& raised) const {
  double noise = 0;
  for (size_t u = 0; u < layers.size(); ++u) {
    if (!raised[u]) noise += layers[u].noise[k];
  }
  for (const Edge& edge : edges) {
    if (raised[edge.from] && !raised[edge.to] && !edge.noise.empty()) noise += edge.noise[k];
  }
  return noise;
}

bool Problem::keepsLimits(const std::vector<bool>& raised) const {
  for (size_t k = 0; k < limits.size(); ++k) {
    if (noiseOf(k, raised) > limits[k]) return false;
  }
  return true;
}

Solution solve(const Problem& problem, const Effort& effort) {
  for (const Problem::Layer& layer : problem.layers)
    CARINA_CHECK(layer.noise.size() == problem.limits.size(), "every layer says what it adds to every noise");
  return Search(problem, effort).run();
}

}  // namespace carina::precision
