// SPDX-License-Identifier: Apache-2.0
// From an npu graph to its schedule: the best of several tries (scheduler.hpp) by memory and cycles.
#pragma once

#include "base/result.hpp"
#include "compiler/schedule/schedule.hpp"
#include "compiler/search/options.hpp"

namespace carina::compiler {

/// `graph` has been through makeAddressable() and outlives the schedule.
Result<Schedule> schedule(const ir::Graph& graph, const npu::Machine& machine, const Options& options);

}  // namespace carina::compiler
