// SPDX-License-Identifier: Apache-2.0
#include "precision/min_cut.hpp"

#include <algorithm>
#include <limits>
#include <queue>

#include "base/check.hpp"

namespace carina::precision {

MinCut::MinCut(size_t choices) : source_(choices), sink_(choices + 1), from_(choices + 2) {}

void MinCut::addArc(size_t from, size_t to, double capacity) {
  if (capacity <= 0) return;
  tiny_ = std::max(tiny_, capacity * 1e-13);
  from_[from].push_back(arcs_.size());
  arcs_.push_back({to, capacity});
  from_[to].push_back(arcs_.size());
  arcs_.push_back({from, 0});
}

void MinCut::addPrice(size_t choice, double no, double yes) {
  // Choices on the source's side are yes: their arcs to the sink are cut.
  const double both = std::min(no, yes);
  addArc(choice, sink_, yes - both);
  addArc(source_, choice, no - both);
}

void MinCut::addDifference(size_t one, size_t other, double price) {
  CARINA_CHECK(price >= 0, "a pair that differs may not be cheaper than one that agrees");
  addArc(other, one, price);
}

bool MinCut::findLevels() {
  levels_.assign(from_.size(), -1);
  levels_[source_] = 0;
  std::queue<size_t> reached;
  reached.push(source_);
  for (; !reached.empty(); reached.pop()) {
    for (const size_t arc : from_[reached.front()]) {
      const size_t to = arcs_[arc].to;
      if (arcs_[arc].capacity <= tiny_ || levels_[to] >= 0) continue;
      levels_[to] = levels_[reached.front()] + 1;
      reached.push(to);
    }
  }
  return levels_[sink_] >= 0;
}

double MinCut::push(size_t at, double amount) {
  if (at == sink_) return amount;
  for (size_t& i = next_[at]; i < from_[at].size(); ++i) {
    const size_t arc = from_[at][i];
    const size_t to = arcs_[arc].to;
    if (arcs_[arc].capacity <= tiny_ || levels_[to] != levels_[at] + 1) continue;
    const double pushed = push(to, std::min(amount, arcs_[arc].capacity));
    if (pushed <= 0) continue;
    arcs_[arc].capacity -= pushed;
    arcs_[arc ^ 1].capacity += pushed;
    return pushed;
  }
  return 0;
}

std::vector<bool> MinCut::solve() {
  while (findLevels()) {
    next_.assign(from_.size(), 0);
    while (push(source_, std::numeric_limits<double>::max()) > 0) {
    }
  }
  std::vector<bool> yes(source_);
  for (size_t i = 0; i < yes.size(); ++i) yes[i] = levels_[i] >= 0;
  return yes;
}

}  // namespace carina::precision
