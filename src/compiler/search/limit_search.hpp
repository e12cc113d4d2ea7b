// SPDX-License-Identifier: Apache-2.0
// Limits on fast memory: several are tried and judged by the timeline of the command stream that each gives.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "compiler/schedule/schedule.hpp"
#include "compiler/search/options.hpp"

namespace carina::compiler {

class Scheduler;

/// The schedule with the fewest cycles among those tried with `prepared`. Schedules that fit are preferred:
/// an arena of `arenaLimit` bytes, which also determines the limits that are tried, and `aim` bytes of the
/// arena or of a dedicated cache, which affects nothing else (0: any).
Result<Schedule> fastestSchedule(const Scheduler& prepared, const npu::Machine& machine,
                                 const Options& options, int64_t arenaLimit, int64_t aim = 0);

/// The cycles that fastestSchedule() expects of its best try with all of the fast memory. No weights are
/// encoded.
Result<npu::Cycles> expectedCycles(const Scheduler& prepared, const npu::Machine& machine,
                                   const Options& options);

}  // namespace carina::compiler
