// SPDX-License-Identifier: Apache-2.0
// The textual form of a graph, for people, --dump-after and golden tests.
#pragma once

#include <string>

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

}  // namespace carina::ir
