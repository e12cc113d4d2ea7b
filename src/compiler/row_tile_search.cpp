// SPDX-License-Identifier: Apache-2.0
#include "compiler/row_tile_search.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compiler/row_intervals.hpp"
#include "compiler/search/scheduler.hpp"
#include "compiler/search/search.hpp"

namespace carina::compiler {
namespace {

using Interval = RowIntervals::Interval;
using Products = RowIntervals::Products;
using Tiled = RowIntervals::Tiled;

/// Numbers of tiles to try. Runs of few rows, such as attention heads, are also tried row by row.
constexpr std::array<int64_t, 5> kTileCounts{2, 3, 4, 8, 16};
constexpr int64_t kFewRows = 16;

/// Numbers of tiles to try for rows that can be divided into `parts`; those that give tiles of the same size
/// once.
std::vector<int64_t> countsFor(int64_t parts) {
  std::vector<int64_t> counts;
  std::set<int64_t> sizes;
  for (const int64_t count : kTileCounts) {
    if (count <= parts && sizes.insert(partsPerTile(parts, count)).second) counts.push_back(count);
  }
  if (parts <= kFewRows && sizes.insert(1).second) counts.push_back(parts);
  return counts;
}

/// Costs of graphs by their shapes; nothing for those that cannot be scheduled.
template <typename Cost>
class KnownCosts {
 public:
  explicit KnownCosts(std::function<Result<Cost>(const ir::Graph&)> costOf) : costOf_(std::move(costOf)) {}

  std::optional<Cost> of(const ir::Graph& graph) {
    const auto [known, added] = known_.try_emplace(shapesOf(graph));
    if (!added) return known->second;
    if (auto cost = costOf_(graph); cost.ok()) known->second = *cost;
    return known->second;
  }

 private:
  std::function<Result<Cost>(const ir::Graph&)> costOf_;
  std::map<std::string, std::optional<Cost>> known_;
};

/// Tiles for fewer cycles.
class SpeedSearch {
 public:
  /// `cache`: bytes. `joins`: whether products of computed matrices may be tiled.
  SpeedSearch(int64_t cache, bool joins, std::function<Result<npu::Cycles>(const ir::Graph&)> cyclesOf)
      : cache_(cache), joins_(joins), cycles_(std::move(cyclesOf)) {}

  /// Graphs with tiles; see tiledForSpeed().
  std::vector<TiledGraph> run(const ir::Graph& tosa) {
    std::vector<TiledGraph> graphs;
    if (std::optional<TiledGraph> outer = aroundLayers(tosa)) {
      graphs = once(outer->graph);
      for (TiledGraph& inner : graphs) relate(inner.pieces, outer->pieces);
      if (graphs.empty()) graphs.push_back(std::move(*outer));
    }
    for (TiledGraph& tiled : once(tosa)) graphs.push_back(std::move(tiled));
    return graphs;
  }

 private:
  /// With tiles apart from products of computed matrices and, if `joins_`, with tiles of these.
  std::vector<TiledGraph> once(const ir::Graph& tosa) {
    const RowTiling tiling(tosa);
    std::vector<RowTiles> apart, joined;
    bool differ = false;
    for (const RowRun& nodes : tiling.runs()) {
      const RowIntervals run(tiling, nodes);
      std::vector<Tiled> tiled = this->apart(run);
      for (const Tiled& t : tiled) apart.push_back(run.tiles(t));
      if (joins_) differ |= join(run, tiled);
      for (const Tiled& t : tiled) joined.push_back(run.tiles(t));
    }
    std::vector<TiledGraph> graphs;
    if (!apart.empty()) graphs.push_back(tiling.tiled(apart));
    if (differ) graphs.push_back(tiling.tiled(joined));
    return graphs;
  }

  /// With tiles around pairs of layers in which parts may be tiled again, where that is faster than tiles of
  /// these parts alone.
  std::optional<TiledGraph> aroundLayers(const ir::Graph& tosa) {
    const RowTiling tiling(tosa);
    std::vector<RowTiles> tiles;
    for (const RowRun& nodes : tiling.runs()) {
      const RowIntervals run(tiling, nodes);
      for (const RowIntervals::ExtendedPair& pair : run.extendedPairs(cache_ / 2)) {
        if (const Tiled tiled = fastestOuter(run, pair); tiled.count > 1) tiles.push_back(run.tiles(tiled));
      }
    }
    if (tiles.empty()) return std::nullopt;
    return tiling.tiled(tiles);
  }

  Tiled fastestOuter(const RowIntervals& run, const RowIntervals::ExtendedPair& pair) {
    Tiled best{pair.upTo, 1};
    const std::optional<npu::Cycles> whole = cyclesInTiles(run.extracted(pair.around, {}));
    if (!whole) return best;
    npu::Cycles fewest = *whole;
    for (const Interval& interval : {pair.upTo, pair.around}) {
      for (const int64_t count : {2, 3, 4}) {
        if (count > run.parts(interval)) break;
        const Tiled next{interval, count};
        const std::optional<npu::Cycles> cycles = cyclesInTiles(run.extracted(pair.around, {&next, 1}));
        if (!cycles || *cycles >= fewest || !isWorthwhile(*cycles, *whole)) continue;
        best = next;
        fewest = *cycles;
      }
      if (pair.upTo == pair.around) break;
    }
    return best;
  }

  /// The cycles of a part with tiles.
  std::optional<npu::Cycles> cyclesInTiles(const ir::Graph& part) {
    const std::vector<TiledGraph> tiled = once(part);
    return cycles_.of(tiled.empty() ? part : tiled.back().graph);
  }

  /// Relates pieces of pieces to the original values.
  static void relate(std::vector<RowPiece>& pieces, const std::vector<RowPiece>& outer) {
    std::map<std::string_view, const RowPiece*> byName;
    for (const RowPiece& piece : outer) byName.emplace(piece.name, &piece);
    for (RowPiece& piece : pieces) {
      const auto whole = byName.find(piece.whole);
      if (whole == byName.end()) continue;
      piece.firstElement += whole->second->firstElement;
      piece.whole = whole->second->whole;
    }
    pieces.insert(pieces.end(), outer.begin(), outer.end());
  }

  /// Without products of computed matrices.
  std::vector<Tiled> apart(const RowIntervals& run) {
    std::vector<Tiled> best;
    for (const Interval& interval : run.aroundReductions(Products::Apart)) {
      if (const Tiled tiled = fastest(run, interval); tiled.count > 1) best.push_back(tiled);
    }
    for (const Interval& interval : run.layerPairs(cache_ / 2)) {
      const auto overlaps = [&](const Tiled& t) { return interval.overlaps(t.nodes); };
      if (std::any_of(best.begin(), best.end(), overlaps)) continue;
      std::vector<Interval> candidates{interval};
      if (const std::optional<Interval> second = run.secondOf(interval)) candidates.push_back(*second);
      if (const Tiled tiled = fastest(run, interval, candidates); tiled.count > 1) best.push_back(tiled);
    }
    return best;
  }

  /// With products where that is faster than `apart`. Returns whether it is anywhere.
  bool join(const RowIntervals& run, std::vector<Tiled>& apart) {
    bool joined = false;
    for (const Interval& interval : run.aroundReductions(Products::Included))
      joined |= join(run, interval, apart);
    return joined;
  }

  /// Whether a difference exceeds the error of expectations.
  static bool isWorthwhile(npu::Cycles cycles, npu::Cycles than) {
    constexpr int kPercent = 2;
    return cycles * 100 <= than * (100 - kPercent);
  }

  /// The number of tiles with which an interval takes the fewest cycles; 1: none is worthwhile.
  Tiled fastest(const RowIntervals& run, const Interval& interval) {
    return fastest(run, interval, {&interval, 1});
  }

  /// The same for an interval of which one of these parts is tiled.
  Tiled fastest(const RowIntervals& run, const Interval& around, std::span<const Interval> parts) {
    constexpr int kPatience = 2;  // numbers in a row that are no better
    Tiled best{around, 1};
    const std::optional<npu::Cycles> whole = cycles_.of(run.extracted(around, {}));
    if (!whole) return best;
    npu::Cycles fewest = *whole;
    for (const Interval& part : parts) {
      int worse = 0;
      for (const int64_t count : countsFor(run.parts(part))) {
        if (worse++ == kPatience) break;
        const Tiled next{part, count};
        const std::optional<npu::Cycles> cycles = cycles_.of(run.extracted(around, {&next, 1}));
        if (!cycles || *cycles >= fewest || !isWorthwhile(*cycles, *whole)) continue;
        best = next;
        fewest = *cycles;
        worse = 0;
      }
    }
    return best;
  }

  /// Tiles an interval instead of parts of it, if that is faster.
  bool join(const RowIntervals& run, const Interval& interval, std::vector<Tiled>& best) {
    const auto isInside = [&](const Tiled& t) { return interval.contains(t.nodes); };
    const auto overlaps = [&](const Tiled& t) { return interval.overlaps(t.nodes); };
    std::vector<Tiled> parts;
    std::copy_if(best.begin(), best.end(), std::back_inserter(parts), isInside);
    if (std::count_if(best.begin(), best.end(), overlaps) != std::ssize(parts)) return false;
    const Tiled joined = fastest(run, interval);
    if (joined.count == 1) return false;
    const auto cycles = cycles_.of(run.extracted(interval, {&joined, 1}));
    const auto before = cycles_.of(run.extracted(interval, parts));
    if (!cycles || (before && !isWorthwhile(*cycles, *before))) return false;
    std::erase_if(best, isInside);
    best.push_back(joined);
    return true;
  }

  const int64_t cache_;
  const bool joins_;
  KnownCosts<npu::Cycles> cycles_;
};

/// Tiles for a smaller arena.
class MemorySearch {
 public:
  MemorySearch(const ir::Graph& tosa, const npu::Machine& machine, const Options& options, const Lower& lower)
      : machine_(machine), options_(options), lower_(lower), tosa_(withLongRuns(tosa)), tiling_(tosa_) {
    KnownCosts<int64_t> bounds([this](const ir::Graph& part) { return boundOf(part); });
    std::map<std::string, size_t> known;
    for (const RowRun& nodes : tiling_.runs()) {
      const RowIntervals run(tiling_, nodes);
      const std::optional<Interval> longest = run.longest();
      for (const Interval& interval :
           longest ? std::vector{*longest} : run.aroundReductions(Products::Included)) {
        const auto [at, added] = known.try_emplace(shapesOf(run.extracted(interval, {})), alike_.size());
        if (added) alike_.push_back({{}, countsBelow(run, interval, bounds), 0});
        alike_[at->second].intervals.push_back(run.tiles({interval, 1}));
      }
    }
    std::erase_if(alike_, [](const Alike& a) { return a.counts.empty(); });
  }

  std::optional<TiledGraph> run(int64_t bytes) {
    if (alike_.empty()) return std::nullopt;
    const Result<int64_t> whole = boundOf(tosa_);
    for (Alike& alike : alike_) alike.chosen = alike.counts.size();
    const std::optional<int64_t> least = bound();
    if (!least || (whole.ok() && *least >= *whole)) return std::nullopt;
    const int64_t goal = std::max(bytes, *least);
    // Fewer tiles wherever the rest of the network determines the arena.
    for (Alike& alike : alike_) {
      for (alike.chosen = 0; alike.chosen < alike.counts.size(); ++alike.chosen) {
        if (const auto found = bound(); found && *found <= goal) break;
      }
    }
    return tiled();
  }

 private:
  /// Intervals of the same shapes, which are tiled in the same way.
  struct Alike {
    std::vector<RowTiles> intervals;
    std::vector<int64_t> counts;  // numbers of tiles, each of which lowers their bound
    size_t chosen = 0;            // how many of these are exhausted: 0 for no tiles
  };

  Result<int64_t> boundOf(const ir::Graph& graph) const {
    CARINA_TRY(const ir::Graph npu, lower_(graph));
    // The bound with maps in part is so low that hardly any schedule comes close to it.
    return arenaBound(npu, machine_, options_, RollingMaps::Whole);
  }

  /// Numbers of tiles, each of which lowers the interval's own bound by more than a percent.
  static std::vector<int64_t> countsBelow(const RowIntervals& run, const Interval& interval,
                                          KnownCosts<int64_t>& bounds) {
    std::optional<int64_t> least = bounds.of(run.extracted(interval, {}));
    std::vector<int64_t> counts;
    if (!least) return counts;
    for (const int64_t count : countsFor(run.parts(interval))) {
      const Tiled tiled{interval, count};
      const std::optional<int64_t> bound = bounds.of(run.extracted(interval, {&tiled, 1}));
      if (!bound || *bound * 100 >= *least * 99) continue;
      counts.push_back(count);
      least = bound;
    }
    return counts;
  }

  TiledGraph tiled() const {
    std::vector<RowTiles> tiles;
    for (const Alike& alike : alike_) {
      if (alike.chosen == 0) continue;
      for (RowTiles t : alike.intervals) {
        t.count = alike.counts[alike.chosen - 1];
        tiles.push_back(t);
      }
    }
    return tiling_.tiled(tiles);
  }
  std::optional<int64_t> bound() const {
    const Result<int64_t> bound = boundOf(tiled().graph);
    return bound.ok() ? std::optional(*bound) : std::nullopt;
  }

  const npu::Machine& machine_;
  const Options& options_;
  const Lower& lower_;
  const ir::Graph tosa_;
  const RowTiling tiling_;
  std::vector<Alike> alike_;
};

}  // namespace

std::vector<TiledGraph> tiledForSpeed(const ir::Graph& tosa, const npu::Machine& machine,
                                      const Options& options, const Lower& lower) {
  if (!machine.memory.spilling()) return {};
  Options measured;
  measured.cacheLimit = options.cacheLimit;
  // Otherwise a product is so many operations that its schedules take long, and gain little.
  const bool joins = machine.target->architecture().computedWeights;
  SpeedSearch search(cacheLimit(machine, options), joins, [&](const ir::Graph& part) -> Result<npu::Cycles> {
    CARINA_TRY(const ir::Graph npu, lower(part));
    return expectedCycles(npu, machine, measured);
  });
  return search.run(withLongRuns(tosa));
}

std::optional<TiledGraph> tiledForMemory(const ir::Graph& tosa, const npu::Machine& machine,
                                         const Options& options, int64_t bytes, const Lower& lower) {
  if (machine.memory.spilling()) return std::nullopt;
  return MemorySearch(tosa, machine, options, lower).run(bytes);
}

}  // namespace carina::compiler
