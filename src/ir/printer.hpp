// SPDX-License-Identifier: Apache-2.0
// The textual form of a graph, for people, --dump-after and golden tests.
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
  bool exact = false;  // everything that the graph holds: parse() (parser.hpp) gives the same graph
};

/// One line per constant and node:
///   graph @main(%x: f32[1,3,8,8]) -> (%relu) {
///     %relu: f32[1,3,8,8] = aten.relu.default(%x)
///   }
/// Attributes at their default are left out. Deterministic: the same graph prints the same text. docs/ir.md
/// has the grammar.
std::string print(const Graph& graph, const PrintOptions& options = {});
std::string print(const Node& node);

/// Names of values as texts show them: %name; %name#2 for the second value of that name in its graph; %0, %1,
/// ... for values without one; _ for none. Values have to be asked for in one order for the names to be the
/// same.
class ValueNames {
 public:
  std::string of(const Value* value);

  /// While it lives, names are those of a graph inside of the one before.
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
  std::unordered_map<std::string, int> copies_;  // of the graph at hand: values that have each name
  int nextNumber_ = 0;
};

/// FNV-1a: tells two large constants apart in a printed graph, where it stands as #0123456789abcdef.
uint64_t contentsChecksum(ByteSpan bytes);

}  // namespace carina::ir
