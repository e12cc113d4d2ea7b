// SPDX-License-Identifier: Apache-2.0
// From an npu graph to its schedule: the best of several tries (scheduler.hpp) by memory and cycles.
#pragma once

#include "base/result.hpp"
#include "compiler/schedule/pass_links.hpp"
#include "compiler/schedule/schedule.hpp"
#include "compiler/search/options.hpp"

namespace carina::compiler {

/// Where the inputs and outputs of a graph are placed.
enum class Ends : uint8_t {
  InArena,  // by the schedule: inputs are overwritten once they are no longer read
  Outside,  // by the caller, in the arena's memory, where nothing else is placed
};

/// `graph` has been through makeAddressable() and outlives the schedule. With Ends::Outside, the addresses of
/// buffers of kind Input and Output are behind the arena until relocate() sets them.
Result<Schedule> schedule(const ir::Graph& graph, const npu::Machine& machine, const Options& options,
                          Ends ends = Ends::InArena);

/// Whether `a` takes a smaller arena; if they differ by at most a 256th, whether it takes fewer cycles.
bool isSmaller(const Schedule& a, const Schedule& b);

/// The cycles that a quick search expects of schedule(). No weights are encoded.
Result<npu::Cycles> expectedCycles(const ir::Graph& graph, const npu::Machine& machine,
                                   const Options& options);

/// A lower bound, in bytes, on the arena of every schedule of this graph in which cascades hold these maps in
/// part.
Result<int64_t> arenaBound(const ir::Graph& graph, const npu::Machine& machine, const Options& options,
                           RollingMaps rolling);

}  // namespace carina::compiler
