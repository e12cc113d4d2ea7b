// SPDX-License-Identifier: Apache-2.0
// Row tiles. Many operators compute each row of their result (a token of a transformer, an attention head, a
// row of an image) from the same row of their inputs. A run of such operators can be repeated for ranges of
// rows, its tiles: the maps between its operators are then only held for the rows of one tile. Weights are
// read once per tile.
#pragma once

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph.hpp"

namespace carina::compiler {

/// Consecutive nodes [first, last] of a TOSA graph that work row by row, apart from nodes that depend on
/// constants only. A row of a value is an index of its first dimension that is not 1.
struct RowRun {
  const ir::Node* first = nullptr;
  const ir::Node* last = nullptr;
};

/// The nodes [first, last] of a run, to be repeated for `count` ranges of rows of about equal size.
struct RowTiles {
  const ir::Node* first = nullptr;
  const ir::Node* last = nullptr;
  int64_t count = 0;
};

/// A value of a tiled graph that holds some rows of a named value of the original one.
struct RowPiece {
  std::string name;
  std::string whole;         // name of the original value
  int64_t firstElement = 0;  // of the original value, in row-major order
};

struct TiledGraph {
  ir::Graph graph;
  std::vector<RowPiece> pieces;
};

/// Parts of a run's rows in all of its tiles but the last.
int64_t partsPerTile(int64_t parts, int64_t count);

/// A copy of a TOSA graph in which nodes that interrupt a run, but do not depend on it, come before the run:
/// attention, for example, is one run of heads if its values are transposed before its scores are computed.
ir::Graph withLongRuns(const ir::Graph& tosa);

/// A TOSA graph, which outlives this, and which of its nodes can be tiled.
class RowTiling {
 public:
  explicit RowTiling(const ir::Graph& tosa);

  /// All runs of at least two nodes that work row by row, as long as possible, in order.
  std::vector<RowRun> runs() const;

  /// Number of equal parts that the rows of nodes [first, last] of a run can be divided into: the greatest
  /// common divisor of the rows of all values.
  int64_t parts(const ir::Node* first, const ir::Node* last) const;

  /// A copy of the graph in which these runs, which do not overlap, are tiled. Inputs and outputs are the
  /// same.
  TiledGraph tiled(std::span<const RowTiles> tiles) const;

  /// Nodes [first, last] as a graph of their own, whose inputs and outputs are the values that they exchange
  /// with other nodes. `copies` receives the copy of each node in order.
  ir::Graph extract(const ir::Node* first, const ir::Node* last, std::vector<const ir::Node*>& copies) const;

 private:
  const ir::Graph& tosa_;
  std::unordered_set<const ir::Value*> invariant_;  // values that nodes compute from constants only
};

}  // namespace carina::compiler
