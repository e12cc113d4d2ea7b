// SPDX-License-Identifier: Apache-2.0
// Which limits on fast memory a search tries.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/search/scheduler.hpp"

namespace carina::compiler {

/// Networks of more passes take long to schedule: less is tried.
constexpr size_t kManyPasses = 2048;

/// The limits that a search of the given effort tries, apart from those that lower efforts try. `arenaLimit`:
/// bytes of arena that the program may take (0: any).
std::vector<Limits> limitsToTry(const Scheduler& prepared, const npu::Machine& machine,
                                const Options& options, int64_t arenaLimit, int effort);

/// Smaller values of Limits::maxUnslicedBytes to try when only `fast` bytes of fast memory are available.
std::vector<int64_t> shortStaging(const Scheduler& prepared, int64_t fast);

}  // namespace carina::compiler
