// SPDX-License-Identifier: Apache-2.0
// One node of the archive's graph to one node of the aten dialect: arguments bound by name, defaults filled
// in.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "pt2/document.hpp"

namespace carina::pt2 {

/// Names that the graph's values have so far; a name that is taken gets a number.
class ValueNames {
 public:
  std::string claim(const std::string& wanted);

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> lastNumber_;  // that a wanted name was given
};

/// What a node can refer to: the values of the (sub)graph it stands in.
struct Scope {
  const GraphDocument& document;
  ir::Graph& graph;
  ValueNames& names;
  std::unordered_map<std::string, ir::Value*> values;
  bool autocast = false;  // results may have a lower precision than the operands ask for
  std::string path = {};  // of a region, in front of the names of its nodes: "cond.true_graph_0."
};

/// The location of a node of the scope: names of nodes are unique in one graph only.
ir::LocationRef placed(const ir::LocationRef& location, const Scope& scope);

/// Appends the node and defines its results in the scope. Errors: values that are not defined, arguments that
/// the operator does not have or of the wrong kind, results whose recorded type differs from the inferred
/// one.
Status buildNode(const NodeDocument& node, Scope& scope);

/// The value that a tensor argument names.
Result<ir::Value*> findValue(const Scope& scope, const std::string& name);
/// The type that the document records for a name.
Result<ir::Type> recordedType(const GraphDocument& document, const std::string& name);

}  // namespace carina::pt2
