// SPDX-License-Identifier: Apache-2.0
// Control flow in aten graphs: the two operators whose regions run or do not run, or run again, as values
// decide. Regions see only their own inputs and constants (ir::Graph).
#pragma once

#include <functional>

#include "ir/graph.hpp"

namespace carina::aten {

/// higher_order.cond(pred, [operands]) -> results: region 0 where the one element of `pred` (bool) is true,
/// region 1 where it is false. Both take the operands and give the results.
const ir::OpDef& condDef();

/// higher_order.while_loop([carried], [additional]) -> results: while region 0 gives true, region 1 makes new
/// carried values. Both take the carried values, then the additional ones, which stay the same; region 0
/// gives one bool, region 1 values of the types of the carried ones. The results are the last carried values.
const ir::OpDef& whileLoopDef();

/// Whether the node is one of the two.
bool isControlFlow(const ir::Node& node);

/// The operator of that name, null for other names.
const ir::OpDef* findControlFlow(std::string_view name);

/// What region `region` of a control flow node is called in messages: "true branch", "loop condition".
std::string_view regionRole(const ir::Node& node, size_t region);

/// Calls `visit` on the graph, then, in order, on the regions of its control flow nodes and all below. The
/// first error ends it, placed at the node whose region it is about when it has no place.
Status forEachGraph(ir::Graph& graph, const std::function<Status(ir::Graph&)>& visit);

/// Calls `visit` on every node of the graph and of the regions of its control flow nodes, in the order of the
/// text form: a node before its regions.
void forEachNode(const ir::Graph& graph, const std::function<void(const ir::Node&)>& visit);

/// Turns of a loop after which every executor on the host gives up.
constexpr int64_t kMostTurns = 1'000'000;

}  // namespace carina::aten
