// SPDX-License-Identifier: Apache-2.0
// The parts of a run of row-by-row operators (legalize/row_tiles.hpp) that are worth tiling.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/legalize/row_tiles.hpp"
#include "ir/graph.hpp"

namespace carina::compiler {

/// What a graph costs apart from the values of its constants.
std::string shapesOf(const ir::Graph& graph);

/// The nodes of a run, which are addressed by their positions.
class RowIntervals {
 public:
  /// Positions [first, last] of nodes.
  struct Interval {
    size_t first = 0, last = 0;

    bool contains(const Interval& other) const { return first <= other.first && other.last <= last; }
    bool overlaps(const Interval& other) const { return first <= other.last && other.first <= last; }
    bool operator==(const Interval&) const = default;
  };

  /// An interval in `count` tiles.
  struct Tiled {
    Interval nodes;
    int64_t count = 1;
  };

  /// Products of computed matrices whose second factor also has rows, such as those of attention heads.
  enum class Products : uint8_t { Apart, Included };

  /// `tiling` outlives this.
  RowIntervals(const RowTiling& tiling, const RowRun& run);

  /// Between convolutions and products whose weights or second factors each tile would read again: what
  /// surrounds reductions (norms, softmax), has rows that can be divided as finely, and holds a map of some
  /// size. `products`: whether products by rows may be part of it.
  std::vector<Interval> aroundReductions(Products products) const;

  /// Two consecutive convolutions with many weights, and what is between them, if the second one reads a map
  /// of at least `bytes`: each tile reads the weights again, but the map stays small.
  std::vector<Interval> layerPairs(int64_t bytes) const;

  /// The second layer of such a pair, with what is between the layers. The first one reads its weights once
  /// if only this part is tiled; the map between them is behind the cache, from which each tile takes its
  /// rows.
  std::optional<Interval> secondOf(const Interval& pair) const {
    return withNarrowBorders({pair.first + 1, pair.last});
  }

  /// A pair of layers with what is before them (`upTo`) and also after them (`around`), up to the next nodes
  /// with many weights, as far as it has rows that can be divided as finely.
  struct ExtendedPair {
    Interval upTo, around;
  };
  std::vector<ExtendedPair> extendedPairs(int64_t bytes) const;

  /// All nodes of the run but those at its ends that exchange accumulators with other nodes; nothing if
  /// others do.
  std::optional<Interval> longest() const { return withNarrowBorders({0, nodes_.size() - 1}); }

  /// Number of equal parts that the rows of an interval can be divided into.
  int64_t parts(const Interval& interval) const {
    return tiling_.parts(nodes_[interval.first], nodes_[interval.last]);
  }

  RowTiles tiles(const Tiled& tiled) const {
    return {nodes_[tiled.nodes.first], nodes_[tiled.nodes.last], tiled.count};
  }

  /// An interval as a graph of its own, of which these parts are tiled.
  ir::Graph extracted(const Interval& interval, std::span<const Tiled> tiled) const;

 private:
  bool isInside(const ir::Node* node, const Interval& interval) const;
  bool isReadOutside(const ir::Value* value, const Interval& interval) const;

  /// Whether a node neither reads accumulators from outside nor leaves any: those have no memory.
  bool readsNarrow(size_t node, const Interval& interval) const;
  bool leavesNarrow(size_t node, const Interval& interval) const;

  /// The interval without nodes at its ends that exchange accumulators with others; nothing if it has others.
  std::optional<Interval> withNarrowBorders(Interval interval) const;

  /// Whether a map of some size is only needed within the interval.
  bool hasLargeMap(const Interval& interval) const;

  /// Extends an interval within [begin, end).
  void extend(Interval& interval, size_t begin, size_t end) const;

  const RowTiling& tiling_;
  std::vector<const ir::Node*> nodes_;
  std::unordered_map<const ir::Node*, size_t> positions_;
};

}  // namespace carina::compiler
