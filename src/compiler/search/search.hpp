// SPDX-License-Identifier: Apache-2.0
// From an npu graph to its schedule: the best of several tries (scheduler.hpp) by memory and cycles.
#pragma once

#include "base/result.hpp"
#include "compiler/schedule/schedule.hpp"
#include "compiler/search/options.hpp"

namespace carina::compiler {

/// Where the inputs and outputs of a graph lie.
enum class Ends : uint8_t {
  InArena,  // the schedule places them: inputs are overwritten once nobody reads them
  Outside,  // where the caller puts them, in the arena's memory: nothing else is placed there
};

/// `graph` has been through makeAddressable() and outlives the schedule. With Ends::Outside, buffers of kind
/// Input and Output have an address behind the arena until relocate() says where they are.
Result<Schedule> schedule(const ir::Graph& graph, const npu::Machine& machine, const Options& options,
                          Ends ends = Ends::InArena);

}  // namespace carina::compiler
