// SPDX-License-Identifier: Apache-2.0
// What a run did, pass by pass, as the measure of Arm's planner wants it (cost/metric.hpp). Works on the
// streams of any compiler.
#pragma once

#include <vector>

#include "ethosn/cost/metric.hpp"
#include "ethosn/model/run.hpp"

namespace carina::ethosn {

/// The agents [first, end) together, which are those of one pass.
PassWork workOfAgents(const CommandStream& stream, const RunStats& stats, size_t first, size_t end);

/// First agents of the passes and, at the end, the number of agents. A pass is a PLE agent (or, of a copy, a
/// store) with the agents behind the last pass, and the stores behind it: compilers add agents in this order.
std::vector<size_t> passBounds(const CommandStream& stream);
std::vector<PassWork> passesOf(const CommandStream& stream, const RunStats& stats);

}  // namespace carina::ethosn
