// SPDX-License-Identifier: Apache-2.0
// Input of a search for the cheapest precision: which operators of a network change precision together, and
// the network with a switch at every tensor that they round.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/quantize.hpp"

namespace carina::quantize {

/// Source nodes that share a precision. Those that compute, and functions in the same TABLE, are named by
/// rules; operators that move or clamp their results follow them.
struct PrecisionUnit {
  std::vector<std::string> nodes;      // for rules, in program order
  std::vector<std::string> followers;  // source nodes that need no rule
  std::string modulePath;              // of the first node
  /// Joins or selects from several values: without a rule, it would follow the first of them.
  bool joins = false;
};

/// Values that one unit produces and another reads: converted if the precisions differ.
struct PrecisionEdge {
  size_t from = 0, to = 0;  // units
  int64_t elements = 0;
};

/// A tensor that is rounded to its int8 codes, or not: the `dequantize` node yields the rounded values,
/// `real` is the unrounded source.
struct RoundingSwitch {
  const ir::Node* dequantize = nullptr;
  const ir::Value* real = nullptr;
  /// A unit, which rounds its results; or units.size() plus an edge, at which a unit in int8 rounds the
  /// results of a 16-bit unit.
  size_t site = 0;
};

struct SwitchedNetwork {
  ir::Graph graph;  // float weights; a quantize and a dequantize node around every tensor with codes
  std::vector<PrecisionUnit> units;
  std::vector<PrecisionEdge> edges;
  std::vector<RoundingSwitch> switches;  // none where a rule decides
};

/// For a float graph and the options of an int8 run. An operator is part of a unit if its precision follows
/// options.precision, that is, if no rule sets it. If there are more than `mostUnits` units, neighbours are
/// merged. Control-flow regions are left out. Errors: graphs that the executor cannot run.
Result<SwitchedNetwork> switchedNetwork(ir::Graph graph, const Options& options,
                                        std::span<const Sample> samples, size_t mostUnits);

}  // namespace carina::quantize
