// SPDX-License-Identifier: Apache-2.0
// The cheapest choice of layers to raise such that the noise of the others stays within limits: a knapsack
// problem with conversions between neighbours. Layers are numbered; the meaning of the numbers is up to the
// caller.
#pragma once

#include <cstddef>
#include <vector>

namespace carina::precision {

struct Problem {
  /// A layer: the cost of raising it, and what it adds to each noise as long as it is not raised.
  struct Layer {
    double cost = 0;
    std::vector<double> noise;  // not negative
  };
  /// Applies if the two layers differ: a conversion has a cost, and what a raised layer produces is rounded
  /// for one that is not.
  struct Edge {
    size_t from = 0, to = 0;
    double whenFromRaised = 0, whenToRaised = 0;  // not negative
    std::vector<double> noise;                    // if only `from` is raised; not negative, or empty
  };
  std::vector<Layer> layers;
  std::vector<Edge> edges;
  std::vector<double> limits;  // of each noise, summed over layers that are not raised, and edges

  double noiseOf(size_t k, const std::vector<bool>& raised) const;
  double costOf(const std::vector<bool>& raised) const;
  bool keepsLimits(const std::vector<bool>& raised) const;
};

struct Solution {
  std::vector<bool> raised;
  double cost = 0;
  double bound = 0;  // no choice that satisfies the limits costs less
  /// How much more it may cost than the best, as a share of `scale`.
  double gap(double scale) const { return scale > 0 ? (cost - bound) / scale : 0; }
};

/// Limits the effort: minimum cuts, each some microseconds per layer.
struct Effort {
  size_t cuts = 2000;
  double tolerance = 0;  // a difference between cost and bound that is good enough
};

/// Branch and bound on the Lagrangian relaxation: with a price on each noise instead of its limit, the best
/// choice is a minimum cut, and its value a bound. Raising everything satisfies all limits that can be
/// satisfied: limits below 0 cannot. The same problem has the same solution.
Solution solve(const Problem& problem, const Effort& effort = {});

}  // namespace carina::precision
