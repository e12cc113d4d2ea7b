// SPDX-License-Identifier: Apache-2.0
// Which operators of a network change their precision together, and the network with a switch at every tensor
// that they round: what a search for the cheapest precision asks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/quantize.hpp"

namespace carina::quantize {

/// Source nodes of one precision. Those that compute, and functions that one TABLE computes with them, are
/// named by rules; operators that move or limit what they make follow them.
struct PrecisionUnit {
  std::vector<std::string> nodes;      // for rules, in program order
  std::vector<std::string> followers;  // source nodes that need no rule
  std::string modulePath;              // of the first node
  /// Joins or selects from several values: without a rule it would follow the first of them.
  bool joins = false;
};

/// Values that one unit makes and another reads: where the precisions differ they are converted.
struct PrecisionEdge {
  size_t from = 0, to = 0;  // units
  int64_t elements = 0;
};

/// A tensor that is rounded to its int8 codes, or not: the `dequantize` node hands on rounded values, `real`
/// is what they are made of.
struct RoundingSwitch {
  const ir::Node* dequantize = nullptr;
  const ir::Value* real = nullptr;
  /// A unit, which rounds what it makes; or units.size() plus an edge, at which a unit in int8 rounds what
  /// one of 16 bits has made.
  size_t site = 0;
};

struct SwitchedNetwork {
  ir::Graph graph;  // float weights; a quantize and a dequantize node around every tensor with codes
  std::vector<PrecisionUnit> units;
  std::vector<PrecisionEdge> edges;
  std::vector<RoundingSwitch> switches;  // what rules settle has none
};

/// Of a float graph and the options of an int8 run. An operator is part of a unit when its precision follows
/// options.precision, that is, where no rule names one. Networks with more than `mostUnits` of them get
/// neighbours together. Regions of control flow are left out. Errors: what the executor cannot run.
Result<SwitchedNetwork> switchedNetwork(ir::Graph graph, const Options& options,
                                        std::span<const Sample> samples, size_t mostUnits);

}  // namespace carina::quantize
