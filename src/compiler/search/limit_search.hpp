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

/// The schedule with the fewest cycles of those that are tried with `prepared`, of one that fits an arena of
/// `arenaLimit` bytes, or `cacheAim` bytes of a dedicated cache (0: any), where there is one.
Result<Schedule> fastestSchedule(const Scheduler& prepared, const npu::Machine& machine,
                                 const Options& options, int64_t arenaLimit, int64_t cacheAim = 0);

/// Thinner slices of staged weights, in bytes, to try where `fast` bytes of fast memory are short.
std::vector<int64_t> shortStaging(const Scheduler& prepared, int64_t fast);

}  // namespace carina::compiler
