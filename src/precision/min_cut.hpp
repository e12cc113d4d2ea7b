// SPDX-License-Identifier: Apache-2.0
// The cheapest combination of yes/no choices if every choice has a price, and every pair that differs as
// well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace carina::precision {

/// Prices are accumulated, then the problem is solved once. The price of a pair must not be negative.
class MinCut {
 public:
  explicit MinCut(size_t choices);
  void addPrice(size_t choice, double no, double yes);
  /// The price of the pair if `one` is no and `other` yes.
  void addDifference(size_t one, size_t other, double price);
  /// The choices with the lowest sum, by Dinic's algorithm.
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
  double tiny_ = 0;        // below this, a capacity is rounding error
  std::vector<Arc> arcs_;  // arc i and its reverse i ^ 1
  std::vector<std::vector<size_t>> from_;
  std::vector<int> levels_;
  std::vector<size_t> next_;
};

}  // namespace carina::precision
