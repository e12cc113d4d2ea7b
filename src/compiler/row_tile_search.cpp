// SPDX-License-Identifier: Apache-2.0
#include "compiler/row_tile_search.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/search/search.hpp"
#include "tosa/ops.hpp"

namespace carina::compiler {
namespace {

/// Maps of fewer elements are not worth tiling.
constexpr int64_t kMinElements = 32 << 10;

/// Convolutions with more weights than this are costly to repeat.
constexpr int64_t kManyWeights = 16 << 10;

/// Numbers of tiles to try, until this many in a row are no better. Runs of few rows, such as attention
/// heads, are also tried row by row.
constexpr std::array<int64_t, 5> kTileCounts{2, 3, 4, 8, 16};
constexpr int kPatience = 2;
constexpr int64_t kFewRows = 16;

/// Rows that can be divided into this many parts are divided finely enough.
constexpr int64_t kManyParts = 8;

/// Positions [first, last] of nodes of a run.
struct Interval {
  size_t first = 0, last = 0;
};

/// A node whose weights, or second factor, each tile would read again, and probably in another order.
bool isHeavy(const ir::Node* node) {
  if (ir::isa<tosa::Matmul>(node)) return true;
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

/// What a graph costs apart from the values of its constants.
std::string shapesOf(const ir::Graph& graph) {
  std::string text;
  for (const ir::Node* node : graph.nodes()) {
    text += node->opName();
    for (const ir::Value* operand : node->operands()) text += ir::typeText(operand->type);
    text += ir::typeText(node->result()->type);
  }
  return text;
}

/// Finds the tiles of one run.
class RunSearch {
 public:
  using Lower = std::function<Result<ir::Graph>(const ir::Graph&)>;
  using Known = std::map<std::string, std::optional<npu::Cycles>>;

  RunSearch(const RowTiling& tiling, const RowRun& run, const npu::Machine& machine, const Options& options,
            const Lower& lower, Known& known)
      : tiling_(tiling), machine_(machine), options_(options), lower_(lower), known_(known) {
    for (const ir::Node* node = run.first;; node = node->next()) {
      positions_.emplace(node, nodes_.size());
      nodes_.push_back(node);
      if (node == run.last) break;
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (isHeavy(nodes_[i])) heavy_.push_back(i);
    }
  }

  std::vector<RowTiles> run() {
    std::vector<RowTiles> tiles;
    for (const Interval& interval : intervals()) {
      const int64_t count = bestCount(interval);
      if (count > 1) tiles.push_back({nodes_[interval.first], nodes_[interval.last], count});
    }
    return tiles;
  }

 private:
  bool isInside(const ir::Node* node, const Interval& interval) const {
    const auto at = positions_.find(node);
    return at != positions_.end() && interval.first <= at->second && at->second <= interval.last;
  }

  bool isReadOutside(const ir::Value* value, const Interval& interval) const {
    return value->isGraphOutput() ||
           std::any_of(value->uses().begin(), value->uses().end(),
                       [&](const ir::Use& use) { return !isInside(use.node, interval); });
  }

  /// Whether a node neither reads accumulators from outside nor leaves any: those have no memory.
  bool readsNarrow(size_t node, const Interval& interval) const {
    const auto& operands = nodes_[node]->operands();
    return std::all_of(operands.begin(), operands.end(), [&](const ir::Value* v) {
      return !v->producer() || isInside(v->producer(), interval) || dtypeSize(v->dtype()) <= 2 ||
             v->dtype() == DType::Shape;
    });
  }
  bool leavesNarrow(size_t node, const Interval& interval) const {
    const ir::Value* result = nodes_[node]->result();
    return dtypeSize(result->dtype()) <= 2 || !isReadOutside(result, interval);
  }

  /// The interval without nodes at its ends that exchange accumulators with others; nothing if it has others.
  std::optional<Interval> withNarrowBorders(Interval interval) const {
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

  /// Whether a map of some size is only needed within the interval.
  bool hasLargeMap(const Interval& interval) const {
    for (size_t i = interval.first; i <= interval.last; ++i) {
      const ir::Value* result = nodes_[i]->result();
      if (result->numElements() >= kMinElements && !isReadOutside(result, interval)) return true;
    }
    return false;
  }

  /// Position i of the heavy nodes, with one before and one past all nodes.
  size_t beginAfter(size_t i) const { return i == 0 ? 0 : heavy_[i - 1] + 1; }
  size_t endBefore(size_t i) const { return i == heavy_.size() ? nodes_.size() : heavy_[i]; }

  int64_t parts(const Interval& interval) const {
    return tiling_.parts(nodes_[interval.first], nodes_[interval.last]);
  }

  /// Between heavy nodes, what surrounds reductions (norms, softmax) and has rows that can be divided as
  /// finely.
  std::vector<Interval> intervals() const {
    std::vector<Interval> found;
    for (size_t i = 0; i <= heavy_.size(); ++i) {
      const size_t begin = beginAfter(i), end = endBefore(i);
      std::optional<Interval> around;
      for (size_t n = begin; n < end; ++n) {
        if (!isReduction(nodes_[n])) continue;
        if (!around) around = Interval{n, n};
        around->last = n;
      }
      if (!around) continue;
      extend(*around, begin, end);
      around = withNarrowBorders(*around);
      if (around && hasLargeMap(*around)) found.push_back(*around);
    }
    return found;
  }

  void extend(Interval& interval, size_t begin, size_t end) const {
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

  /// Expected cycles of an interval in so many tiles; nothing if it cannot be scheduled.
  std::optional<npu::Cycles> cycles(const Interval& interval, int64_t count) {
    std::vector<const ir::Node*> copies;
    ir::Graph part = tiling_.extract(nodes_[interval.first], nodes_[interval.last], copies);
    if (count > 1) {
      const RowTiles tiles{copies.front(), copies.back(), count};
      part = RowTiling(part).tiled(std::span(&tiles, 1)).graph;
    }
    const auto [known, added] = known_.try_emplace(shapesOf(part));
    if (!added) return known->second;
    const auto npu = lower_(part);
    if (!npu.ok()) return std::nullopt;
    auto expected = expectedCycles(*npu, machine_, options_);
    if (expected.ok()) known->second = *expected;
    return known->second;
  }

  /// The best number of tiles for an interval; 1: none is worthwhile.
  int64_t bestCount(const Interval& interval) {
    const std::optional<npu::Cycles> whole = cycles(interval, 1);
    if (!whole) return 1;
    int64_t best = 1;
    npu::Cycles fewest = *whole;
    int worse = 0;  // counts since the last one that was better
    for (const int64_t count : countsFor(parts(interval))) {
      if (worse++ == kPatience) break;
      const std::optional<npu::Cycles> tiled = cycles(interval, count);
      if (!tiled || *tiled >= fewest || !isWorthwhile(*tiled, *whole)) continue;
      best = count;
      fewest = *tiled;
      worse = 0;
    }
    return best;
  }

  /// Numbers of tiles to try; those that give tiles of the same size once.
  static std::vector<int64_t> countsFor(int64_t parts) {
    std::vector<int64_t> counts;
    std::set<int64_t> sizes;
    for (const int64_t count : kTileCounts) {
      if (count <= parts && sizes.insert(partsPerTile(parts, count)).second) counts.push_back(count);
    }
    if (parts <= kFewRows && sizes.insert(1).second) counts.push_back(parts);
    return counts;
  }

  /// Whether the difference exceeds the error of expectations.
  static bool isWorthwhile(npu::Cycles tiled, npu::Cycles whole) {
    constexpr int kPercent = 2;
    return tiled * 100 <= whole * (100 - kPercent);
  }

  const RowTiling& tiling_;
  const npu::Machine& machine_;
  const Options& options_;
  const Lower& lower_;
  Known& known_;
  std::vector<const ir::Node*> nodes_;
  std::unordered_map<const ir::Node*, size_t> positions_;
  std::vector<size_t> heavy_;
};

}  // namespace

std::optional<TiledGraph> withRowTiles(const ir::Graph& tosa, const npu::Machine& machine,
                                       const Options& options,
                                       const std::function<Result<ir::Graph>(const ir::Graph&)>& lower) {
  if (!machine.memory.spilling()) return std::nullopt;
  const RowTiling tiling(tosa);
  Options measured;
  measured.cacheLimit = options.cacheLimit;
  RunSearch::Known known;
  std::vector<RowTiles> tiles;
  for (const RowRun& run : tiling.runs()) {
    const std::vector<RowTiles> found = RunSearch(tiling, run, machine, measured, lower, known).run();
    tiles.insert(tiles.end(), found.begin(), found.end());
  }
  if (tiles.empty()) return std::nullopt;
  return tiling.tiled(tiles);
}

}  // namespace carina::compiler
