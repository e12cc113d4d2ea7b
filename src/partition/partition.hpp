// SPDX-License-Identifier: Apache-2.0
// Which nodes run on the NPU, and why the others do not. A quantized aten graph in; out comes the same graph
// with each NPU part gathered in one program.delegate_call node (its region is the part as aten graph) and
// everything else left in place.
#pragma once

#include <functional>
#include <optional>
#include <string>
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
};

/// A reason not to place this TOSA operator on the target, nothing when it can be placed.
using Supports = std::function<std::optional<std::string>(const ir::Node& tosaOp)>;

struct Options {
  Supports supports;  // none: everything that lowers is taken
  /// What would put an operator on the NPU that `supports` refuses for a reason; "" when nothing would. May
  /// be empty.
  std::function<std::string(const ir::Node& tosaOp, const std::string& reason)> remedy;
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
Result<Partitioned> partition(ir::Graph graph, const Options& options);

/// What the border of parts consists of.
bool isQuantize(const ir::Node& node);
bool isDequantize(const ir::Node& node);
/// A conversion between int64 and int32.
bool isIntegerCast(const ir::Node& node);

/// program.delegate_call: operands -> results through region 0.
const ir::OpDef& delegateCallDef();

}  // namespace carina::partition
