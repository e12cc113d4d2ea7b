// SPDX-License-Identifier: Apache-2.0
// Turns rules into settings of every node.
#pragma once

#include <unordered_map>

#include "quantize/quantize.hpp"

namespace carina::quantize {

struct NodeSettings {
  Settings settings;
  bool named = false;  // a rule matched: nothing else changes these settings
  bool wide = false;   // activations have int32 codes (28 bits and sign) instead of their precision's
};

struct Assignment {
  std::unordered_map<const ir::Node*, NodeSettings> nodes;
  /// Rules that match nothing, and rules that disagree about an operator.
  std::vector<Diagnostic> warnings;
  /// Names of source nodes that stay in float.
  std::vector<std::string> keptFloat;

  const NodeSettings& of(const ir::Node& node) const { return nodes.at(&node); }
};

/// Every node gets the run's settings, overridden by all matching rules in order. Operators that only move or
/// select data and that no rule names adopt the precision of their operand, or else of their reader, to avoid
/// conversions. Comparisons of program inputs that nothing else reads use 16 bits. If one of the operators
/// that a source node became stays in float, all of them do.
Assignment assign(const ir::Graph& graph, const Options& options);

}  // namespace carina::quantize
