// SPDX-License-Identifier: Apache-2.0
// What a run did, pass by pass, in the form that the cost metric of Arm's planner requires (cost/metric.hpp).
// Works on the streams of any compiler.
#pragma once

#include <vector>

#include "ethosn/cost/metric.hpp"
#include "ethosn/model/run.hpp"

namespace carina::ethosn {

/// The work of the agents [first, end), which form one pass.
PassWork workOfAgents(const CommandStream& stream, const RunStats& stats, size_t first, size_t end);

/// First agents of the passes and, at the end, the number of agents. A pass is a PLE agent (in a copy: a
/// store) with the agents since the previous pass and the stores that follow it: compilers add agents in this
/// order.
std::vector<size_t> passBounds(const CommandStream& stream);
std::vector<PassWork> passesOf(const CommandStream& stream, const RunStats& stats);

}  // namespace carina::ethosn
