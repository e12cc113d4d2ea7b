// SPDX-License-Identifier: Apache-2.0
// The cheapest of all yes/no choices where every choice has a price, and so has every pair that differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace carina::precision {

/// Prices are added up, then solved for once. Pairs may cost nothing, not less.
class MinCut {
 public:
  explicit MinCut(size_t choices);
  void addPrice(size_t choice, double no, double yes);
  /// Of the pair where `one` is no and `other` yes.
  void addDifference(size_t one, size_t other, double price);
  /// The choices with the lowest sum. (Dinic's algorithm.)
  std::vector<bool> solve();

 private:
  struct Arc {
    size_t to;
    double capacity;
  };
  void addArc(size_t from, size_t to, double capacity);
  bool findLevels();
  double push(size_t at, double amount);

  size_t source_, sink_;
  double tiny_ = 0;        // below which a capacity is rounding
  std::vector<Arc> arcs_;  // arc i and its reverse i ^ 1
  std::vector<std::vector<size_t>> from_;
  std::vector<int> levels_;
  std::vector<size_t> next_;
};

}  // namespace carina::precision
