// SPDX-License-Identifier: Apache-2.0
// The cheapest choice of layers to raise so that the noise of the others stays within limits: a knapsack with
// conversions between neighbours. Layers are numbered; what the numbers mean is the caller's.
#pragma once

#include <cstddef>
#include <vector>

namespace carina::precision {

struct Problem {
  /// A layer: what it costs to raise it, and what it adds to each of the noises as long as it is not.
  struct Layer {
    double cost = 0;
    std::vector<double> noise;  // not negative
  };
  /// What happens where the two layers differ: a conversion costs, and what a raised layer makes is rounded
  /// for one that is not.
  struct Edge {
    size_t from = 0, to = 0;
    double whenFromRaised = 0, whenToRaised = 0;  // not negative
    std::vector<double> noise;                    // when only `from` is raised; not negative, or none at all
  };
  std::vector<Layer> layers;
  std::vector<Edge> edges;
  std::vector<double> limits;  // of each noise, summed up over layers that are not raised, and edges

  double noiseOf(size_t k, const std::vector<bool>& raised) const;
  double costOf(const std::vector<bool>& raised) const;
  bool keepsLimits(const std::vector<bool>& raised) const;
};

struct Solution {
  std::vector<bool> raised;
  double cost = 0;
  double bound = 0;  // no choice that keeps the limits costs less
  /// How much dearer it may be than the best, as a share of `scale`.
  double gap(double scale) const { return scale > 0 ? (cost - bound) / scale : 0; }
};

/// How much is spent on it: minimum cuts, each some microseconds per layer.
struct Effort {
  size_t cuts = 2000;
  double tolerance = 0;  // a difference of cost to the bound that is good enough
};

/// Branch and bound on the Lagrangian relaxation: with a price on each noise instead of its limit, the best
/// choice is a minimum cut, and its value a bound. Raising everything keeps all limits that can be kept:
/// limits below 0 are not. The same problem has the same solution.
Solution solve(const Problem& problem, const Effort& effort = {});

}  // namespace carina::precision
