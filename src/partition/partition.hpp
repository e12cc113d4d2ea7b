// SPDX-License-Identifier: Apache-2.0
// Which nodes run on the NPU, and why the others do not. Takes a quantized aten graph; returns the same graph
// with each NPU part gathered in one program.delegate_call node (its region is the part as an aten graph) and
// everything else left in place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"
#include "partition/requests.hpp"

namespace carina::partition {

/// Why a node is not on the NPU.
struct Refusal {
  std::string op;          // "aten.sort.default"
  std::string node;        // name in the source graph
  std::string modulePath;  // in the user's network
  std::string reason;      // "kernel height 80 > 64"
  std::string remedy;      // what would put it on the NPU; "" if nothing would
  Code code = Code::None;  // kind of reason
};

/// Why this operator cannot be placed on the target, and what would change that; empty if it can.
using Supports = std::function<std::optional<Diagnostic>(const ir::Node& op)>;

/// The target's form of a whole part; empty if some of it cannot be placed there.
using Place = std::function<std::optional<ir::Graph>(const ir::Graph& tosa)>;

/// Whether the target runs a part with conditionals or loops, and why not.
using PlaceControlFlow = std::function<Status(const ir::Graph& tosa)>;
/// Whether a TOSA graph contains conditionals or loops.
bool hasControlFlow(const ir::Graph& tosa);

/// Lowers a part (a graph in the network's dialect). Errors name the nodes that cannot be lowered.
using Lower = std::function<Result<ir::Graph>(const ir::Graph& part)>;

/// How graphs in a dialect other than aten are partitioned: value by value, without conversions at the
/// border.
struct Dialect {
  Lower lower;
  /// Whether a node alone is a conversion between real values and codes, which is expected at the network's
  /// ends and stays off the NPU.
  std::function<bool(const ir::Node&)> converts;
  /// Whether a node separates networks in one graph, so that no part extends across it; null: no node does.
  std::function<bool(const ir::Node&)> divides;
  /// The one variable that a node with effects reads or writes: it keeps its order relative to nodes of the
  /// same variable and to those that name none (""). Null: no node names one.
  std::function<std::string_view(const ir::Node&)> variable;
};

struct Options {
  std::optional<Dialect> dialect;  // none: aten
  /// Why a node cannot be in any part, whatever the target; asked first. Null: every node can.
  Supports whyOther;
  /// Asked first; only if it fails is every operator of the part checked separately. Null: always the latter.
  Place placeWhole;
  Supports supports;  // of TOSA operators; null: everything that can be lowered is accepted
  /// Asked about parts with conditionals or loops. Those that cannot be in parts stay outside, and their
  /// regions are partitioned separately. Null: all of them stay outside.
  PlaceControlFlow placeControlFlow;
  bool keepParts = true;  // as the regions of their calls; otherwise the regions are empty
  Requests keepOff;
};

/// One delegate call and its TOSA graph (with the same inputs and outputs as the call).
struct Delegate {
  ir::Node* call = nullptr;  // in Partitioned::graph
  ir::Graph tosa;
  std::optional<ir::Graph> placed;  // what Options::placeWhole returned
};

struct Partitioned {
  ir::Graph graph;
  std::vector<Delegate> delegates;
  std::vector<Refusal> refusals;
  std::vector<std::string> unmatched;  // requests of Options that match no node
  /// Whether there is one delegate and outside it only quantize, dequantize and int64 <-> int32 conversions
  /// of program inputs and outputs.
  bool wholly = false;
};

/// Partitions are as few and as large as legality (no cycles) allows. quantize of float program inputs and
/// dequantize of float program outputs stay outside. Nodes with effects that stay on the CPU keep their
/// order, except relative to nodes of other variables.
Result<Partitioned> partition(ir::Graph graph, const Options& options);

/// Lets what remains on the CPU of an operator that was decomposed into several (a layer norm, a softmax)
/// compute in float throughout: removes the quantize and dequantize nodes between its pieces.
void keepFloatInside(ir::Graph& graph);

/// The nodes at the border of parts.
bool isQuantize(const ir::Node& node);
bool isDequantize(const ir::Node& node);
/// A conversion between int64 and int32.
bool isIntegerCast(const ir::Node& node);

/// program.delegate_call: operands -> results through region 0.
const ir::OpDef& delegateCallDef();

}  // namespace carina::partition
