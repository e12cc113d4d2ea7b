// SPDX-License-Identifier: Apache-2.0
// Which nodes run on the NPU, and why the others do not. A quantized aten graph in; out comes the same graph
// with each NPU part gathered in one program.delegate_call node (its region is the part as aten graph) and
// everything else left in place.
#pragma once

#include <functional>
#include <optional>
#include <string>
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
  std::vector<std::string>
      keepOffOps;  // operator names ("aten.relu.default" or "relu") the user keeps off the NPU
  std::vector<std::string> keepOffNames;    // node names, with * and ?
  std::vector<std::string> keepOffModules;  // module paths, with * and ?
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
  /// One delegate, and outside it only quantize, dequantize and int64 <-> int32 conversions of program inputs
  /// and outputs.
  bool wholly = false;
};

/// Partitions are as few and as large as legality (no cycles) allows. quantize of float program inputs and
/// dequantize of float program outputs stay outside.
Result<Partitioned> partition(ir::Graph graph, const Options& options);

/// program.delegate_call: operands -> results through region 0.
const ir::OpDef& delegateCallDef();

}  // namespace carina::partition
