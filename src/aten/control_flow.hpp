// SPDX-License-Identifier: Apache-2.0
// Control flow in aten graphs: operators whose regions run conditionally, while a condition holds, or once
// per slice. Regions see only their own inputs and constants (ir::Graph).
#pragma once

#include <functional>

#include "ir/graph.hpp"

namespace carina::aten {

/// higher_order.cond(pred, [operands]) -> results: runs region 0 if the one element of `pred` (bool) is true,
/// region 1 if it is false. Both take the operands and return the results.
const ir::OpDef& condDef();

/// higher_order.while_loop([carried], [additional]) -> results: while region 0 returns true, region 1
/// computes new carried values. Both take the carried values, followed by the additional ones, which do not
/// change; region 0 returns one bool, region 1 values of the types of the carried ones. The results are the
/// final carried values.
const ir::OpDef& whileLoopDef();

/// higher_order.scan([carried], [xs], [additional]; dim, chunk, reverse, unroll) -> carried and ys: region 0
/// runs once for every `chunk` entries of the xs along dimension `dim`, which has the same size in all of
/// them, starting from the end if `reverse`. It takes the carried values, `chunk` entries of each x and the
/// additional values, and returns new carried values and `chunk` entries of each y. The results are the final
/// carried values, followed by the ys, whose entries are at the positions of the corresponding entries of the
/// xs. `unroll`: the loop is unrolled once its values have codes.
const ir::OpDef& scanDef();

/// The parts of a scan.
struct Scan {
  explicit Scan(const ir::Node& node);
  size_t carried = 0;  // operands and results that precede the xs and ys
  size_t sliced = 0;   // number of xs
  int64_t dim = 0;     // along which slices are cut
  int64_t chunk = 1;   // entries per slice
  int64_t turns = 0;   // iterations, one per slice; 0: there is no x, or it cannot be cut into such slices
  bool reverse = false, unroll = false;
  /// The slice that iteration `turn` reads and writes.
  int64_t sliceOf(int64_t turn) const { return reverse ? turns - 1 - turn : turn; }
};

/// Read and write the slice of `tensor` that belongs to iteration `turn`.
Tensor sliceOf(const Tensor& tensor, const Scan& scan, int64_t turn);
void putSlice(Tensor& tensor, const Scan& scan, int64_t turn, const Tensor& slice);

/// Whether the node is a cond, while_loop or scan.
bool isControlFlow(const ir::Node& node);

/// The control flow operator of that name, or null.
const ir::OpDef* findControlFlow(std::string_view name);

/// How messages refer to region `region` of a control flow node: "true branch", "loop condition".
std::string_view regionRole(const ir::Node& node, size_t region);

/// Calls `visit` on the graph and then, in order, on the regions of its control flow nodes, recursively.
/// Stops at the first error; if the error has no place, it gets that of the control flow node.
Status forEachGraph(ir::Graph& graph, const std::function<Status(ir::Graph&)>& visit);

/// Calls `visit` on every node of the graph and of the regions of its control flow nodes, in the order of the
/// text form: a node before its regions.
void forEachNode(const ir::Graph& graph, const std::function<void(const ir::Node&)>& visit);

/// Iterations of a loop after which every executor on the host gives up.
constexpr int64_t kMaxLoopIterations = 1'000'000;

}  // namespace carina::aten
