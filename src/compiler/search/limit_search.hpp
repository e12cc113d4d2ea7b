// SPDX-License-Identifier: Apache-2.0
// Limits on fast memory: several are tried, and the time line of the stream that each would give decides.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "compiler/schedule/schedule.hpp"
#include "compiler/search/options.hpp"

namespace carina::compiler {

class Scheduler;

/// The schedule with the fewest cycles of those that are tried with `prepared`, of those that fit where there
/// is one: an arena of `arenaLimit` bytes, for which other limits are tried as well, and `aim` bytes of the
/// arena or a dedicated cache, which change nothing else (0: any).
Result<Schedule> fastestSchedule(const Scheduler& prepared, const npu::Machine& machine,
                                 const Options& options, int64_t arenaLimit, int64_t aim = 0);

/// Thinner slices of staged weights, in bytes, to try where `fast` bytes of fast memory are short.
std::vector<int64_t> shortStaging(const Scheduler& prepared, int64_t fast);

}  // namespace carina::compiler
