// SPDX-License-Identifier: Apache-2.0
// The textual form of a graph, for users, --dump-after and golden tests.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "ir/graph.hpp"

namespace carina::ir {

struct PrintOptions {
  bool locations = false;  // append the source name and module path of each node
  int64_t constantElements =
      8;  // constants up to this many elements are printed in full, larger ones as type and checksum
  bool exact = false;  // complete: parse() (parser.hpp) yields the same graph
};

/// One line per constant and node:
///   graph @main(%x: f32[1,3,8,8]) -> (%relu) {
///     %relu: f32[1,3,8,8] = aten.relu.default(%x)
///   }
/// Attributes at their default are left out. Deterministic: the same graph prints the same text. docs/ir.md
/// has the grammar.
std::string print(const Graph& graph, const PrintOptions& options = {});
std::string print(const Node& node);

/// Names of values in texts: %name; %name#2 for the second value of that name in its graph; %0, %1, ... for
/// values without one; _ for none. Names depend on the order in which values are asked for.
class ValueNames {
 public:
  std::string of(const Value* value);

  /// While one exists, names are those of a graph nested in the previous one.
  class InnerGraph {
   public:
    explicit InnerGraph(ValueNames& names) : names_(names), outer_(std::exchange(names.copies_, {})) {}
    ~InnerGraph() { names_.copies_ = std::move(outer_); }
    InnerGraph(const InnerGraph&) = delete;
    InnerGraph& operator=(const InnerGraph&) = delete;

   private:
    ValueNames& names_;
    std::unordered_map<std::string, int> outer_;
  };

 private:
  std::unordered_map<const Value*, std::string> labels_;
  std::unordered_map<std::string, int> copies_;  // of the current graph: number of values of each name
  int nextNumber_ = 0;
};

/// FNV-1a: distinguishes large constants in a printed graph, where it appears as #0123456789abcdef.
uint64_t contentsChecksum(ByteSpan bytes);

}  // namespace carina::ir
