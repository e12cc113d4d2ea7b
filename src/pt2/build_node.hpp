// SPDX-License-Identifier: Apache-2.0
// Translates one node of the archive's graph to one node of the aten dialect: binds arguments by name and
// fills in defaults.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "pt2/document.hpp"

namespace carina::pt2 {

/// Names that the graph's values have so far; a number is appended to names already in use.
class ValueNames {
 public:
  std::string claim(const std::string& wanted);

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> lastNumber_;  // last appended to a wanted name
};

class Fourier;

/// What a node can refer to: the values of the (sub)graph it belongs to.
struct Scope {
  const GraphDocument& document;
  ir::Graph& graph;
  ValueNames& names;
  std::unordered_map<std::string, ir::Value*> values;
  bool autocast = false;  // results may have a lower precision than the operands imply
  std::string path = {};  // of a region, prefixed to the names of its nodes: "cond.true_graph_0."
  Fourier* fourier = nullptr;
};

/// The location of a node with the scope's path: node names are unique in one graph only.
ir::LocationRef placed(const ir::LocationRef& location, const Scope& scope);

/// Appends the node and defines its results in the scope. Errors: undefined values, unknown arguments or
/// arguments of the wrong kind, results whose recorded type differs from the inferred one.
Status buildNode(const NodeDocument& node, Scope& scope);

/// The value that a tensor argument names.
Result<ir::Value*> findValue(const Scope& scope, const std::string& name);
/// The type that the document records for a name, or, for a complex tensor x, that of "x.real" and all other
/// names with one dot.
Result<ir::Type> recordedType(const GraphDocument& document, const std::string& name);

}  // namespace carina::pt2
