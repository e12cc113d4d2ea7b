// SPDX-License-Identifier: Apache-2.0
#include "compiler/row_intervals.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tosa/ops.hpp"

namespace carina::compiler {
namespace {

/// Maps of fewer elements are not worth tiling for speed.
constexpr int64_t kMinElements = 32 << 10;

/// Convolutions with more weights than this are costly to repeat.
constexpr int64_t kManyWeights = 16 << 10;

/// Rows that can be divided into this many parts are divided finely enough.
constexpr int64_t kManyParts = 8;

/// A node whose weights, or second factor, each tile would read again, and probably in another order.
bool isHeavy(const ir::Node* node, RowIntervals::Products products) {
  if (ir::isa<tosa::Matmul>(node))
    return products == RowIntervals::Products::Apart || node->result()->dim(0) == 1;
  return ir::isa<tosa::Conv2d>(node) && node->operand(1)->numElements() > kManyWeights;
}

bool isReduction(const ir::Node* node) {
  switch (tosa::opId(node)) {
    case tosa::OpId::ReduceMax:
    case tosa::OpId::ReduceMin:
    case tosa::OpId::ReduceProduct:
    case tosa::OpId::ReduceSum:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string shapesOf(const ir::Graph& graph) {
  std::string text;
  for (const ir::Node* node : graph.nodes()) {
    text += node->opName();
    for (const ir::Value* operand : node->operands()) text += ir::typeText(operand->type);
    text += ir::typeText(node->result()->type);
  }
  return text;
}

RowIntervals::RowIntervals(const RowTiling& tiling, const RowRun& run) : tiling_(tiling) {
  for (const ir::Node* node = run.first;; node = node->next()) {
    positions_.emplace(node, nodes_.size());
    nodes_.push_back(node);
    if (node == run.last) break;
  }
}

bool RowIntervals::isInside(const ir::Node* node, const Interval& interval) const {
  const auto at = positions_.find(node);
  return at != positions_.end() && interval.first <= at->second && at->second <= interval.last;
}

bool RowIntervals::isReadOutside(const ir::Value* value, const Interval& interval) const {
  return value->isGraphOutput() ||
         std::any_of(value->uses().begin(), value->uses().end(),
                     [&](const ir::Use& use) { return !isInside(use.node, interval); });
}

bool RowIntervals::readsNarrow(size_t node, const Interval& interval) const {
  const auto& operands = nodes_[node]->operands();
  return std::all_of(operands.begin(), operands.end(), [&](const ir::Value* v) {
    return !v->producer() || isInside(v->producer(), interval) || dtypeSize(v->dtype()) <= 2 ||
           v->dtype() == DType::Shape;
  });
}

bool RowIntervals::leavesNarrow(size_t node, const Interval& interval) const {
  const ir::Value* result = nodes_[node]->result();
  return dtypeSize(result->dtype()) <= 2 || !isReadOutside(result, interval);
}

std::optional<RowIntervals::Interval> RowIntervals::withNarrowBorders(Interval interval) const {
  while (!readsNarrow(interval.first, interval)) {
    if (interval.first == interval.last) return std::nullopt;
    ++interval.first;
  }
  while (!leavesNarrow(interval.last, interval)) {
    if (interval.first == interval.last) return std::nullopt;
    --interval.last;
  }
  for (size_t i = interval.first; i <= interval.last; ++i) {
    if (!readsNarrow(i, interval) || !leavesNarrow(i, interval)) return std::nullopt;
  }
  return interval;
}

bool RowIntervals::hasLargeMap(const Interval& interval) const {
  for (size_t i = interval.first; i <= interval.last; ++i) {
    const ir::Value* result = nodes_[i]->result();
    if (result->numElements() >= kMinElements && !isReadOutside(result, interval)) return true;
  }
  return false;
}

std::vector<RowIntervals::Interval> RowIntervals::aroundReductions(Products products) const {
  std::vector<Interval> found;
  for (size_t begin = 0, end = 0; begin < nodes_.size(); begin = end + 1) {
    std::optional<Interval> around;
    for (end = begin; end < nodes_.size() && !isHeavy(nodes_[end], products); ++end) {
      if (!isReduction(nodes_[end])) continue;
      if (!around) around = Interval{end, end};
      around->last = end;
    }
    if (!around) continue;
    extend(*around, begin, end);
    around = withNarrowBorders(*around);
    if (around && hasLargeMap(*around)) found.push_back(*around);
  }
  return found;
}

std::vector<RowIntervals::Interval> RowIntervals::layerPairs(int64_t bytes) const {
  std::vector<Interval> found;
  std::optional<size_t> previous;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!isHeavy(nodes_[i], Products::Apart)) continue;
    const bool layer = ir::isa<tosa::Conv2d>(nodes_[i]);
    if (previous && layer && nodes_[i]->operand(0)->numBytes() >= bytes) {
      // With the rescaling of the second one.
      if (const auto narrow = withNarrowBorders({*previous, std::min(i + 1, nodes_.size() - 1)}))
        found.push_back(*narrow);
    }
    previous = layer ? std::optional(i) : std::nullopt;
  }
  return found;
}

std::vector<RowIntervals::ExtendedPair> RowIntervals::extendedPairs(int64_t bytes) const {
  const auto isLayer = [&](size_t node) { return isHeavy(nodes_[node], Products::Apart); };
  std::vector<ExtendedPair> found;
  for (const Interval& pair : layerPairs(bytes)) {
    size_t begin = pair.first, end = pair.last + 1;
    while (begin > 0 && !isLayer(begin - 1)) --begin;
    while (end < nodes_.size() && !isLayer(end)) ++end;
    Interval upTo = pair, around = pair;
    extend(upTo, begin, pair.last + 1);
    extend(around, begin, end);
    const auto narrowUpTo = withNarrowBorders(upTo), narrowAround = withNarrowBorders(around);
    if (!narrowUpTo || !narrowAround) continue;
    if (found.empty() || found.back().around.last < std::min(narrowUpTo->first, narrowAround->first))
      found.push_back({*narrowUpTo, *narrowAround});
  }
  return found;
}

void RowIntervals::extend(Interval& interval, size_t begin, size_t end) const {
  int64_t parts = this->parts(interval);
  const int64_t enough = std::min(parts, kManyParts);
  const auto canTake = [&](size_t node) {
    const int64_t with = std::gcd(parts, this->parts({node, node}));
    if (with < enough) return false;
    parts = with;
    return true;
  };
  while (interval.first > begin && canTake(interval.first - 1)) --interval.first;
  while (interval.last + 1 < end && canTake(interval.last + 1)) ++interval.last;
}

ir::Graph RowIntervals::extracted(const Interval& interval, std::span<const Tiled> tiled) const {
  std::vector<const ir::Node*> copies;
  ir::Graph part = tiling_.extract(nodes_[interval.first], nodes_[interval.last], copies);
  std::vector<RowTiles> tiles;
  for (const Tiled& t : tiled) {
    tiles.push_back({copies[t.nodes.first - interval.first], copies[t.nodes.last - interval.first], t.count});
  }
  return tiles.empty() ? std::move(part) : RowTiling(part).tiled(tiles).graph;
}

}  // namespace carina::compiler
