// SPDX-License-Identifier: Apache-2.0
// Rules become settings of every node.
#pragma once

#include <unordered_map>

#include "quantize/quantize.hpp"

namespace carina::quantize {

struct NodeSettings {
  Settings settings;
  bool named = false;  // a rule matched: nothing else changes these settings
  bool wide = false;   // activations have int32 codes of 28 bits and a sign instead of their precision's
};

struct Assignment {
  std::unordered_map<const ir::Node*, NodeSettings> nodes;
  /// Rules that match nothing, and rules that disagree about an operator.
  std::vector<Diagnostic> warnings;
  /// Names of source nodes that stay in float.
  std::vector<std::string> keptFloat;

  const NodeSettings& of(const ir::Node& node) const { return nodes.at(&node); }
};

/// Every node has the run's settings with all matching rules on top, in order. Operators that only move or
/// select data and that no rule names take the precision of what they read, else of what reads them, so that
/// nothing is converted for their sake. Comparisons of program inputs that nothing else reads are of 16 bits.
/// A source node that became several operators stays in float whole.
Assignment assign(const ir::Graph& graph, const Options& options);

}  // namespace carina::quantize
