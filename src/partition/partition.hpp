// SPDX-License-Identifier: Apache-2.0
// Which nodes run on the NPU, and why the others do not. A quantized aten graph in; out comes the same graph
// with each NPU part gathered in one program.delegate_call node (its region is the part as aten graph) and
// everything else left in place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"

namespace carina::partition {

/// Why a node is not on the NPU.
struct Refusal {
  std::string op;          // "aten.sort.default"
  std::string node;        // name in the source graph
  std::string modulePath;  // in the user's network
  std::string reason;      // "kernel height 80 > 64"
  std::string remedy;      // what would put it on the NPU, "" when nothing would
  Code code = Code::None;  // what kind of reason it is
};

/// Why this TOSA operator cannot be placed on the target and what would change that, nothing when it can.
using Supports = std::function<std::optional<Diagnostic>(const ir::Node& tosaOp)>;

/// What the target makes of a whole part at once, nothing when some of it cannot be placed there.
using Place = std::function<std::optional<ir::Graph>(const ir::Graph& tosa)>;

/// Whether the target runs a part with choices or loops, and why not.
using PlaceControlFlow = std::function<Status(const ir::Graph& tosa)>;
/// Whether a TOSA graph has choices or loops.
bool hasControlFlow(const ir::Graph& tosa);

/// What a part (a graph of the network's dialect) becomes. Errors name the nodes that do not lower.
using Lower = std::function<Result<ir::Graph>(const ir::Graph& part)>;

/// How graphs of another dialect than aten are partitioned: value by value, with no conversions at the
/// border.
struct Dialect {
  Lower lower;
  Supports whyOther;  // why a node can be in no part whatever the target is, asked first
  /// Whether a node by itself is a conversion between numbers and codes, which is expected at the network's
  /// ends and stays outside of the NPU.
  std::function<bool(const ir::Node&)> converts;
  /// Whether a node is a border between networks in one graph, over which no part reaches; none: no node is.
  std::function<bool(const ir::Node&)> divides;
  /// The one variable that a node with effects reads or writes: it keeps its order among nodes of the same
  /// variable and those that name none (""). None: no node names one.
  std::function<std::string_view(const ir::Node&)> variable;
};

struct Options {
  std::optional<Dialect> dialect;  // none: aten
  /// Asked first; only where it fails is every operator of the part asked by itself. None: always the latter.
  Place placeWhole;
  Supports supports;  // none: everything that lowers is taken
  /// Asked of parts with choices or loops. Those that cannot be in parts stay outside, and their regions are
  /// partitioned by themselves. None: all of them.
  PlaceControlFlow placeControlFlow;
  bool keepParts = true;  // as region of their calls; without, the regions are empty
  /// What the user keeps off the NPU: operators ("aten.relu.default" or "relu"), node names with * and ?,
  /// module paths with * and ? (with everything below them).
  std::vector<std::string> keepOffOps, keepOffNames, keepOffModules;
  /// The operator that a node was in the network as exported, by the node's name: what keepOffOps means,
  /// besides the node's own.
  std::unordered_map<std::string, std::string> sourceOps;
};

/// One delegate call and its TOSA graph (same inputs and outputs as the call).
struct Delegate {
  ir::Node* call = nullptr;  // in Partitioned::graph
  ir::Graph tosa;
  std::optional<ir::Graph> placed;  // what Options::placeWhole made of it
};

struct Partitioned {
  ir::Graph graph;
  std::vector<Delegate> delegates;
  std::vector<Refusal> refusals;
  std::vector<std::string> unmatched;  // requests of Options that no node fits
  /// One delegate, and outside it only quantize, dequantize and int64 <-> int32 conversions of program inputs
  /// and outputs.
  bool wholly = false;
};

/// Partitions are as few and as large as legality (no cycles) allows. quantize of float program inputs and
/// dequantize of float program outputs stay outside.
/// Of nodes with effects, those that stay on the CPU keep their order, but for those of different variables.
Result<Partitioned> partition(ir::Graph graph, const Options& options);

/// What is left on the CPU of an operator that became several (a layer norm, a softmax) computes in float
/// from end to end: takes the quantize and dequantize nodes between its parts out.
void keepFloatInside(ir::Graph& graph);

/// What the border of parts consists of.
bool isQuantize(const ir::Node& node);
bool isDequantize(const ir::Node& node);
/// A conversion between int64 and int32.
bool isIntegerCast(const ir::Node& node);

/// program.delegate_call: operands -> results through region 0.
const ir::OpDef& delegateCallDef();

}  // namespace carina::partition
