// SPDX-License-Identifier: Apache-2.0
// Units can be placed on one side or the other only as a whole: operators between quantize and dequantize
// nodes.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "ir/op_view.hpp"
#include "partition/partition.hpp"

namespace carina::partition {

/// Nodes connected by float edges, including the dequantize nodes before and the quantize nodes after them;
/// in program order.
struct Unit {
  std::vector<ir::Node*> nodes;
  /// Only a quantize node fed by a program input or constant, or a dequantize node whose result leaves the
  /// program: these stay off the NPU.
  bool boundary = false;
};

struct Units {
  std::vector<Unit> units;
  std::unordered_map<const ir::Node*, size_t> unitOf;
};

/// Copies dequantize nodes so that each has a single use and belongs to its reader.
Status separateDequantizes(ir::Graph& graph);

/// `divides`: nodes that are separate units whatever their edges; null: there are none.
Units findUnits(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& divides = nullptr);

/// aten.to.dtype of an integer value, at the builder's position.
ir::Value* converted(ir::Builder& builder, ir::Value* value, DType to);

/// A part of a graph as a separate graph: values from outside become inputs, values used outside become
/// outputs, with their quantization. int64 values cross as int32 (`casts`, for aten graphs). Fails if a float
/// value would cross, with the value's name.
struct Part {
  ir::Graph graph;
  std::vector<ir::Value*> inputs, outputs;  // the values of the original graph, in the order of the part's
};
Result<Part> extract(const std::vector<ir::Node*>& nodes, const std::string& name, bool casts = true);

}  // namespace carina::partition
