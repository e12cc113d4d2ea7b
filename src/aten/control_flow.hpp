// SPDX-License-Identifier: Apache-2.0
// Control flow in aten graphs: operators whose regions run or do not run, or run again, as values decide or
// as often as there are slices. Regions see only their own inputs and constants (ir::Graph).
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

/// higher_order.scan([carried], [xs], [additional]; dim, chunk, reverse, unroll) -> carried and ys: region 0
/// runs once for every `chunk` entries of the xs along dimension `dim`, whose size is the same in all; the
/// last ones first when `reverse`. It takes the carried values, so many entries of each x, and the additional
/// values, and gives new carried values and as many entries of each y. The results are the last carried
/// values, then the ys, whose entries lie where those of the xs did. `unroll`: it is a loop only until its
/// values have codes.
const ir::OpDef& scanDef();

/// The parts of a scan.
struct Scan {
  explicit Scan(const ir::Node& node);
  size_t carried = 0;  // operands and results in front of the xs and ys
  size_t sliced = 0;   // xs
  int64_t dim = 0;     // that slices are cut along
  int64_t chunk = 1;   // entries of a slice
  int64_t turns = 0;   // slices; 0: there is no x, or it has no such slices
  bool reverse = false, unroll = false;
  /// Which slice a turn takes and makes.
  int64_t sliceOf(int64_t turn) const { return reverse ? turns - 1 - turn : turn; }
};

/// What turn `turn` takes of a tensor that is cut into slices, and what it gives written there.
Tensor sliceOf(const Tensor& tensor, const Scan& scan, int64_t turn);
void putSlice(Tensor& tensor, const Scan& scan, int64_t turn, const Tensor& slice);

/// Whether the node is one of these.
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
